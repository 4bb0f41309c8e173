#ifndef LOCKSTEP_WORKER_DATA_FILES_NUMBER_ARRAY_H_
#define LOCKSTEP_WORKER_DATA_FILES_NUMBER_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::worker {

// The types of numbers that files of data may hold.
enum class NumberType {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
};

size_t SizeOf(NumberType type);       // bytes of an element
const char* NameOf(NumberType type);  // as in NumPy: "float32"

// NumberArray is an array of numbers in memory, row-major and little-endian.
struct NumberArray {
  int64_t count() const;  // the product of the dimensions

  NumberType type = NumberType::kUint8;
  std::vector<int64_t> dimensions;
  std::vector<uint8_t> bytes;  // count() * SizeOf(type)
};

// "28 x 28", for messages.
std::string ShapeText(const std::vector<int64_t>& dimensions);

// Returns the elements as float32, each rounded to nearest. Elements of kUint8
// are not scaled: 255 becomes 255.
//
//   kInvalidArgument  an element is not finite as float32; says which
absl::StatusOr<std::vector<float>> ToFloats(const NumberArray& array);

// Returns the elements as whole numbers. Floats are allowed if they are whole.
//
//   kInvalidArgument  an element is no whole number of an int64; says which
absl::StatusOr<std::vector<int64_t>> ToWholeNumbers(const NumberArray& array);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_NUMBER_ARRAY_H_
