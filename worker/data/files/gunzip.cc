#include "worker/data/files/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/files/file_reading.h"

namespace lockstep::worker {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // accept no zlib header

// Returns the error for a failing `code` of inflate().
absl::Status Explain(int code, const z_stream& stream) {
  if (code == Z_BUF_ERROR) {
    return absl::DataLossError(
        "gzip data ends in the middle: the file is truncated; fetch it again");
  }
  if (code == Z_MEM_ERROR) {
    return absl::ResourceExhaustedError("no memory to decompress");
  }
  return absl::DataLossError(
      absl::StrCat("gzip data is damaged (",
                   stream.msg == nullptr ? "unknown reason" : stream.msg,
                   "); fetch the file again"));
}

// Calls zlib once, with at most kChunk bytes on each side, as it counts in 32
// bits. Removes the bytes used from `in`, and sets `filled` to the number of
// bytes of `out` that have been written.
int Inflate(z_stream& stream, absl::Span<const uint8_t>& in,
            absl::Span<uint8_t> out, size_t& filled) {
  stream.next_in = const_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(std::min(in.size(), kChunk));
  stream.next_out = out.data() + filled;
  stream.avail_out = static_cast<uInt>(std::min(out.size() - filled, kChunk));
  const int code = inflate(&stream, Z_NO_FLUSH);
  const auto used = static_cast<size_t>(stream.next_in - in.data());
  in.remove_prefix(used);
  FileReading::Advance(static_cast<int64_t>(used));
  filled = static_cast<size_t>(stream.next_out - out.data());
  return code;
}

// Makes room for another chunk, up to `most` bytes in all. From half of them on
// it takes all: a vector that grew by doubling would take twice as many.
void Grow(std::vector<uint8_t>& out, size_t most) {
  const size_t size = std::min(out.size() + kChunk, most);
  if (size > out.capacity()) {
    out.reserve(out.capacity() < most / 2 ? std::max(size, 2 * out.capacity())
                                          : most);
  }
  out.resize(size);
}

}  // namespace

bool IsGzip(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::StatusOr<std::vector<uint8_t>> Gunzip(absl::Span<const uint8_t> bytes,
                                            int64_t max_bytes) {
  const size_t limit = static_cast<size_t>(std::max<int64_t>(0, max_bytes));
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) {
    return absl::ResourceExhaustedError("zlib did not start");
  }
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  std::vector<uint8_t> out;
  size_t filled = 0;
  for (;;) {
    // One byte above the limit shows that there is more.
    if (filled == out.size()) Grow(out, limit + 1);
    const int code = Inflate(stream, bytes, absl::MakeSpan(out), filled);
    if (filled > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("decompresses to more than ", limit,
                       " bytes, the most that are read; give a smaller file"));
    }
    if (code != Z_OK && code != Z_STREAM_END) return Explain(code, stream);
    // Z_STREAM_END: gzip allows another member behind this one.
    if (code == Z_OK) continue;
    if (bytes.empty()) break;
    if (!IsGzip(bytes)) {
      return absl::DataLossError(
          absl::StrCat(bytes.size(),
                       " trailing bytes follow the gzip data: the "
                       "file is damaged; fetch it again"));
    }
    inflateReset(&stream);
  }
  out.resize(filled);
  return out;
}

}  // namespace lockstep::worker
