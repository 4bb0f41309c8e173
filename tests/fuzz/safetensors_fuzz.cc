// An accepted header must describe the file exactly, and survive being written
// and read again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/checkpoint/format/safetensors_header.h"

namespace {

using lockstep::SafetensorsHeader;
using lockstep::TensorSpec;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckFillsTheFile(const SafetensorsHeader& header, size_t file_bytes) {
  uint64_t next = header.data_start;
  for (const lockstep::StoredTensor& tensor : header.tensors) {
    Require(header.data_start + tensor.offset == next);
    next += tensor.bytes;
  }
  Require(next == file_bytes);
}

void CheckRoundTrip(const SafetensorsHeader& header) {
  const std::vector<TensorSpec> specs(header.tensors.begin(),
                                      header.tensors.end());
  auto built = lockstep::BuildSafetensorsHeader(specs, header.metadata);
  Require(built.ok());
  auto again = lockstep::ParseSafetensorsHeader(
      built->bytes, built->bytes.size() + built->header.data_bytes);
  Require(again.ok());
  Require(again->metadata == header.metadata);
  Require(again->data_bytes == header.data_bytes);
  Require(again->tensors.size() == header.tensors.size());
  // In another order: the widest elements come first.
  for (const lockstep::StoredTensor& tensor : header.tensors) {
    Require(std::any_of(again->tensors.begin(), again->tensors.end(),
                        [&](const lockstep::StoredTensor& other) {
                          return static_cast<const TensorSpec&>(other) ==
                                     static_cast<const TensorSpec&>(tensor) &&
                                 other.bytes == tensor.bytes;
                        }));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto header = lockstep::ParseSafetensorsHeader(bytes, size);
  if (!header.ok()) {
    Require(header.status().message().size() < 2000);
    return 0;
  }
  CheckFillsTheFile(*header, size);
  CheckRoundTrip(*header);
  return 0;
}
