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
  // Elements that came from elsewhere.
  //
  //   kInvalidArgument  as Zeros(); more or fewer bytes than the shape needs
  static absl::StatusOr<Value> FromBytes(ElementType type,
                                         std::vector<int64_t> shape,
                                         std::vector<std::byte> bytes);
  // `elements` as many as the shape has, of a type of C++ of the same size.
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

  // The elements, of a type of C++ of their size.
  template <typename T>
  std::vector<T> Elements() const {
    std::vector<T> elements(bytes_.size() / sizeof(T));
    if (!elements.empty()) {
      std::memcpy(elements.data(), bytes_.data(), bytes_.size());
    }
    return elements;
  }

  // The same elements in another shape of as many.
  Value Reshaped(std::vector<int64_t> shape) const {
    Value other = *this;
    other.shape_ = std::move(shape);
    return other;
  }

  // The bytes that a value of the shape has.
  //
  //   kInvalidArgument  as Zeros()
  static absl::StatusOr<size_t> BytesOf(ElementType type,
                                        absl::Span<const int64_t> shape);

  // "float32 [2,3]", for messages.
  std::string Description() const;

  bool operator==(const Value&) const = default;

 private:
  ElementType type_ = ElementType::kFloat32;
  std::vector<int64_t> shape_;
  std::vector<std::byte> bytes_;
};

// Rows of a tensor with their places along its first axis, TensorFlow's
// IndexedSlices. values.shape()[0] is the number of indices, which may repeat.
struct Slices {
  std::vector<int64_t> indices;
  Value values;
  // The shape of the whole tensor; absent: unknown.
  std::optional<std::vector<int64_t>> dense_shape;

  bool operator==(const Slices&) const = default;
};

// Either form of a tensor.
using Leaf = std::variant<Value, Slices>;

// "float32 [2,3]", "slices of float32 [2,3]".
std::string DescriptionOf(const Leaf& leaf);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_VALUE_H_
