// Feeds arbitrary bytes to the readers of NumPy's files and archives.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/files/npy.h"
#include "worker/data/files/npz.h"
#include "worker/data/files/number_array.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

void CheckNpy(absl::Span<const uint8_t> bytes) {
  const absl::StatusOr<worker::NpyHeader> header =
      worker::ParseNpyHeader(bytes);
  if (!header.ok()) return;
  uint64_t size = worker::SizeOf(header->type);
  for (const int64_t dimension : header->dimensions) {
    size *= static_cast<uint64_t>(dimension);
  }
  if (size != bytes.size() - header->size) __builtin_trap();
  const worker::NumberArray array{
      header->type, header->dimensions,
      std::vector<uint8_t>(bytes.begin() + header->size, bytes.end())};
  const auto floats = worker::ToFloats(array);
  const auto numbers = worker::ToWholeNumbers(array);
  if (floats.ok() && floats->size() * worker::SizeOf(array.type) != size) {
    __builtin_trap();
  }
  if (numbers.ok() && numbers->size() * worker::SizeOf(array.type) != size) {
    __builtin_trap();
  }
}

void CheckFile(absl::Span<const uint8_t> bytes) {
  if (!worker::IsZip(bytes)) return CheckNpy(bytes);
  for (const char* name : {"", "x"}) {
    const absl::StatusOr<std::vector<uint8_t>> member =
        worker::ReadNpzMember(bytes, name, kMaxBytes);
    if (!member.ok()) continue;
    if (member->size() > static_cast<size_t>(kMaxBytes)) __builtin_trap();
    CheckNpy(*member);
  }
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::CheckFile(absl::MakeSpan(data, size));
  return 0;
}
