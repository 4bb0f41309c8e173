// Feeds arbitrary bytes to the reader of IDX files, gzipped ones included.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/files/gunzip.h"
#include "worker/data/files/idx.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

void CheckIdx(absl::Span<const uint8_t> bytes) {
  const absl::StatusOr<worker::IdxHeader> header =
      worker::ParseIdxHeader(bytes);
  if (!header.ok()) return;
  uint64_t product = 1;
  for (int64_t dimension : header->dimensions) {
    product *= static_cast<uint64_t>(dimension);
  }
  if (product != bytes.size() - header->size) __builtin_trap();
}

void CheckFile(absl::Span<const uint8_t> bytes) {
  if (!worker::IsGzip(bytes)) return CheckIdx(bytes);
  const absl::StatusOr<std::vector<uint8_t>> out =
      worker::Gunzip(bytes, kMaxBytes);
  if (!out.ok()) return;
  if (out->size() > static_cast<size_t>(kMaxBytes)) __builtin_trap();
  CheckIdx(*out);
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::CheckFile(absl::MakeSpan(data, size));
  return 0;
}
