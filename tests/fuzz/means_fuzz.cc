// The answer to a mirror that fetches means. The first byte says how many parts
// it has asked for, of which types they are, and whether they are tables.

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "server/mirror/mapped_means.h"
#include "server/mirror/means_codec.h"

namespace lockstep::server {
namespace {

void Require(bool promise) {
  if (!promise) abort();
}

void Fuzz(const uint8_t* data, size_t size) {
  std::vector<PartSpec> parts(size_t{1} + data[0] % 4);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].count = static_cast<int64_t>(i) + 1;
    if ((data[0] >> (4 + i) & 1) != 0) parts[i].dtype = DType::kBFloat16;
    // Tables are float32; rows of one element.
    const bool is_table =
        (data[0] & 4) != 0 && parts[i].dtype != DType::kBFloat16;
    if (is_table) parts[i].row_width = 1;
  }
  const grpc::Slice bytes(data + 1, size - 1);
  const auto answer = DecodeMeans(grpc::ByteBuffer(&bytes, 1), parts, 0,
                                  static_cast<int>(parts.size()));
  if (!answer.ok()) return;
  if (const auto* shared = std::get_if<SharedMeans>(&*answer)) {
    Require(shared->parts.size() == parts.size());
    // No process has the number that the bytes name, or the wrong file.
    MappedMeans mapped(1);
    const auto read = mapped.Read(0, *shared);
    Require(!read.ok() || read->size() == parts.size());
    return;
  }
  const auto* means = std::get_if<std::vector<PartGradient>>(&*answer);
  Require(means->size() == parts.size());
  // Every byte can be read.
  size_t sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t length = 0;
    for (const ByteSlice& slice : (*means)[i].slices) {
      for (size_t k = 0; k < slice.size; ++k) {
        sum += static_cast<size_t>(slice.data[k]);
      }
      length += slice.size;
    }
    size_t elements = (*means)[i].absent ? 0 : i + 1;
    if ((*means)[i].rows.has_value()) {
      Require(parts[i].is_table() && !(*means)[i].absent);
      elements = (*means)[i].rows->indices.size();
    }
    Require(length == sizeof(float) * elements);
  }
  Require(sum < size * 256);
}

}  // namespace
}  // namespace lockstep::server

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) lockstep::server::Fuzz(data, size);
  return 0;
}
