#ifndef LOCKSTEP_COMMON_COLLECTIVE_VALUE_H_
#define LOCKSTEP_COMMON_COLLECTIVE_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/element_type.h"

namespace lockstep {

// Value is a tensor that owns its elements.
//
// Threads: as a std::vector.
class Value {
 public:
  // A float32 without elements, of shape [0].
  Value() : shape_{0} {}

  // All elements are zeros.
  //
  //   kInvalidArgument  a negative dimension, or more than 2^40 bytes
  static absl::StatusOr<Value> Zeros(ElementType type,
                                     std::vector<int64_t> shape);
  // Makes a value of the bytes of its elements.
  //
  //   kInvalidArgument  as Zeros(); more or fewer bytes than the shape needs
  static absl::StatusOr<Value> FromBytes(ElementType type,
                                         std::vector<int64_t> shape,
                                         std::vector<std::byte> bytes);
  // `elements` must be as many as the shape has, and T must have the size of
  // `type`: all calls that take the value refuse it otherwise, see Check().
  template <typename T>
  static Value Of(ElementType type, std::vector<int64_t> shape,
                  const std::vector<T>& elements) {
    Value made;
    made.type_ = type;
    made.shape_ = std::move(shape);
    const auto bytes = std::as_bytes(std::span(elements));
    made.bytes_.assign(bytes.begin(), bytes.end());
    return made;
  }
  static Value Scalar(float number) {
    return Of<float>(ElementType::kFloat32, {}, {number});
  }

  ElementType type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  size_t size() const { return bytes_.size() / SizeOf(type_); }
  absl::Span<const std::byte> bytes() const { return bytes_; }
  absl::Span<std::byte> mutable_bytes() { return absl::MakeSpan(bytes_); }

  // Returns the elements as T, which must have their size.
  template <typename T>
  std::vector<T> Elements() const {
    std::vector<T> elements(bytes_.size() / sizeof(T));
    if (!elements.empty()) {
      std::memcpy(elements.data(), bytes_.data(), elements.size() * sizeof(T));
    }
    return elements;
  }

  // Returns the same elements in another shape, which must have as many, as
  // those of Of().
  Value Reshaped(std::vector<int64_t> shape) const {
    Value other = *this;
    other.shape_ = std::move(shape);
    return other;
  }

  // Returns the bytes of a value with this shape.
  //
  //   kInvalidArgument  as Zeros()
  static absl::StatusOr<size_t> BytesOf(ElementType type,
                                        absl::Span<const int64_t> shape);

  // OK if the shape has as many elements as there are.
  //
  //   kInvalidArgument  as Zeros(); fewer or more elements
  absl::Status Check() const;

  // "float32 [2,3]", for messages; has the number of elements if Check() fails.
  std::string Description() const;

  bool operator==(const Value&) const = default;

 private:
  ElementType type_ = ElementType::kFloat32;
  std::vector<int64_t> shape_;
  std::vector<std::byte> bytes_;
};

// Rows of a tensor with their indices along its first axis, as TensorFlow's
// IndexedSlices. values.shape()[0] is the number of indices, which may repeat.
struct Slices {
  std::vector<int64_t> indices;
  Value values;
  // The shape of the whole tensor; absent: unknown.
  std::optional<std::vector<int64_t>> dense_shape;

  bool operator==(const Slices&) const = default;
};

// A tensor: dense, or as slices.
using Leaf = std::variant<Value, Slices>;

// Check the values, and that slices have a row for each index.
//
//   kInvalidArgument  as Value::Check(); fewer or more rows
absl::Status CheckSlices(const Slices& slices);
absl::Status CheckLeaf(const Leaf& leaf);

// "float32 [2,3]", "slices of float32 [2,3]".
std::string DescriptionOf(const Leaf& leaf);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_VALUE_H_
