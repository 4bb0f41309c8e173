#include "worker/data/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // what inflateInit2() shall accept

// Inflater is one zlib stream over bytes in memory.
//
// Borrows: `bytes`.
class Inflater {
 public:
  explicit Inflater(absl::Span<const uint8_t> bytes) : rest_(bytes) {
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills as much of `out` as the input allows and returns how much. Less than
  // all of it means that the input has ended, as it should.
  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out);

 private:
  // One call of zlib. Sizes that zlib cannot count are given to it in pieces.
  int Step(absl::Span<uint8_t> out, size_t& produced);
  absl::Status Explain(int code) const;

  absl::Span<const uint8_t> rest_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool between_members_ = false;
};

int Inflater::Step(absl::Span<uint8_t> out, size_t& produced) {
  stream_.next_in = const_cast<Bytef*>(rest_.data());
  stream_.avail_in = static_cast<uInt>(std::min(rest_.size(), kChunk));
  stream_.next_out = out.data();
  stream_.avail_out = static_cast<uInt>(std::min(out.size(), kChunk));
  const uInt in_before = stream_.avail_in;
  const uInt out_before = stream_.avail_out;
  const int code = inflate(&stream_, Z_NO_FLUSH);
  rest_.remove_prefix(in_before - stream_.avail_in);
  produced = out_before - stream_.avail_out;
  return code;
}

absl::Status Inflater::Explain(int code) const {
  if (code == Z_BUF_ERROR) {
    return absl::DataLossError(
        "gzip data ends in the middle: the file is truncated; fetch it again");
  }
  if (code == Z_MEM_ERROR) {
    return absl::ResourceExhaustedError("no memory to decompress");
  }
  return absl::DataLossError(
      absl::StrCat("gzip data is damaged (",
                   stream_.msg == nullptr ? "unknown reason" : stream_.msg,
                   "); fetch the file again"));
}

absl::StatusOr<size_t> Inflater::Read(absl::Span<uint8_t> out) {
  if (!ready_) return absl::ResourceExhaustedError("zlib did not start");
  size_t filled = 0;
  while (filled < out.size()) {
    if (between_members_) {
      if (rest_.empty()) break;
      if (!IsGzip(rest_)) {
        return absl::DataLossError(
            absl::StrCat(rest_.size(), " trailing bytes follow the gzip data"));
      }
      inflateReset(&stream_);
      between_members_ = false;
    }
    size_t produced = 0;
    const int code = Step(out.subspan(filled), produced);
    filled += produced;
    if (code == Z_STREAM_END) between_members_ = true;
    if (code != Z_OK && code != Z_STREAM_END) return Explain(code);
  }
  return filled;
}

}  // namespace

bool IsGzip(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::StatusOr<std::vector<uint8_t>> Gunzip(absl::Span<const uint8_t> bytes,
                                            int64_t max_bytes) {
  const size_t limit = static_cast<size_t>(std::max<int64_t>(0, max_bytes));
  Inflater inflater(bytes);
  std::vector<uint8_t> out;
  for (;;) {
    const size_t begin = out.size();
    const size_t wanted = std::min(kChunk, limit - begin + 1);
    out.resize(begin + wanted);
    LOCKSTEP_ASSIGN_OR_RETURN(
        const size_t read,
        inflater.Read(absl::MakeSpan(out.data() + begin, wanted)));
    out.resize(begin + read);
    if (out.size() > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("decompresses to more than ", limit, " bytes"));
    }
    if (read < wanted) return out;
  }
}

}  // namespace lockstep
