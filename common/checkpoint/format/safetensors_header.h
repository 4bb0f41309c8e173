#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_HEADER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/format/tensor_type.h"

// A safetensors file consists of: 8 bytes, little-endian, the length of the
// JSON; a JSON object, padded with spaces, with each tensor's dtype, shape and
// data_offsets; the tensors, row-major, one after the other without gaps. The
// functions of this header do no I/O.
namespace lockstep {

// The limits of the format, of a header and of a shape.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kMaxTensorRank = 32;
inline constexpr size_t kSafetensorsLengthBytes = 8;

// TensorSpec describes a tensor before it is stored.
//
// Units: shapes count elements; a scalar has the empty shape.
struct TensorSpec {
  std::string name;  // UTF-8, not empty, unique in the file
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;  // every dimension >= 0

  bool operator==(const TensorSpec&) const = default;
};

// StoredTensor adds the position in the file.
//
// Units: offset and length count bytes; the offset is from the start of the
//        data, not of the file.
struct StoredTensor : TensorSpec {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  bool operator==(const StoredTensor&) const = default;
};

// SafetensorsHeader is the parsed header of a file.
//
// Units: bytes.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // by ascending offset
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  // from the start of the file
  uint64_t data_bytes = 0;

  bool operator==(const SafetensorsHeader&) const = default;
};

struct BuiltSafetensorsHeader {
  SafetensorsHeader header;
  std::string bytes;  // the first `data_start` bytes of the file
};

// "tensor "hidden1/weights" F32 [2,3]", for messages.
std::string DescribeTensor(const TensorSpec& tensor);

// Returns the size of the tensor in bytes.
//
//   kInvalidArgument  negative dimension, more than kMaxTensorRank of them, or
//                     more bytes than an int64_t can count
absl::StatusOr<uint64_t> TensorBytes(const TensorSpec& tensor);

// Assigns each tensor its position. The widest elements come first, otherwise
// the given order is kept; data starts at a multiple of 64, so every tensor of
// a mapped file is aligned for its type.
//
//   kInvalidArgument  bad or repeated name, bad shape, text that is not UTF-8,
//                     or a header beyond kMaxSafetensorsHeaderBytes
absl::StatusOr<BuiltSafetensorsHeader> BuildSafetensorsHeader(
    std::vector<TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata);

// Returns the length of the length field and the header together, from the
// first 8 bytes of a file of `file_bytes`. The result is at most `file_bytes`.
//
//   kInvalidArgument  fewer than 8 bytes, or an impossible length
absl::StatusOr<uint64_t> SafetensorsDataStart(absl::string_view start,
                                              uint64_t file_bytes);

// Parses and checks the header of a file of `file_bytes` that begins with
// `start`: form, names, shapes, and that the tensors fill the file exactly,
// without gap or overlap.
//
//   kInvalidArgument  names the tensor, the field, its value and the
//                     allowed values
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view start, uint64_t file_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_HEADER_H_
