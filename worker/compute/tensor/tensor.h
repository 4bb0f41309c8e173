#ifndef LOCKSTEP_WORKER_COMPUTE_TENSOR_TENSOR_H_
#define LOCKSTEP_WORKER_COMPUTE_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/tensor/element_type.h"

namespace lockstep::worker {

// Dimensions in elements, row-major: the last one varies fastest.
using Shape = absl::InlinedVector<int64_t, 4>;

// "[3,2]", for messages.
std::string ShapeText(const Shape& shape);

// Returns the number of elements, 1 for the empty shape.
//
//   kInvalidArgument  a negative dimension, or a product that is no int64
absl::StatusOr<int64_t> CountElements(const Shape& shape);

// ConstTensor is a read-only view of a tensor: element type, shape and a
// pointer. Copying it copies no element.
//
// Threads: a value; the memory is not guarded.
// Borrows: the memory, which may be a backend's Buffer or any other, such as
//          ParameterMemory. It must outlive every copy of the view.
class ConstTensor {
 public:
  ConstTensor() = default;
  // `shape` must pass CountElements().
  ConstTensor(ElementType type, Shape shape, const void* data)
      : type_(type), shape_(std::move(shape)), data_(data) {}

  template <typename T>
  static ConstTensor Of(absl::Span<const T> values, Shape shape) {
    return ConstTensor(kElementTypeOf<T>, std::move(shape), values.data());
  }

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  // `axis` must be below rank().
  int64_t dim(size_t axis) const { return shape_[axis]; }
  size_t rank() const { return shape_.size(); }
  int64_t size() const;  // elements; the shape must pass CountElements()
  size_t bytes() const;

  // T must be the C++ type of type(). Row-major: element [i, j] of a matrix of
  // n columns is data()[i n + j].
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  const void* raw() const { return data_; }

  // Returns a view of the same elements under another shape, which must have as
  // many elements.
  ConstTensor Reshaped(Shape shape) const {
    return ConstTensor(type_, std::move(shape), data_).WithBound(bound_);
  }

  // For int32: all elements have been checked to be in [0, bound()). 0: they
  // have not been checked. See indices.h.
  int64_t bound() const { return bound_; }
  ConstTensor WithBound(int64_t bound) const {
    ConstTensor same = *this;
    same.bound_ = bound;
    return same;
  }

 private:
  ElementType type_ = ElementType::kFloat32;
  Shape shape_ = {0};
  const void* data_ = nullptr;
  int64_t bound_ = 0;
};

// Tensor is a ConstTensor through which the elements may be written; a const
// Tensor may be written through too, as with a span.
//
// Threads: a value; the memory is not guarded.
class Tensor : public ConstTensor {
 public:
  Tensor() = default;
  Tensor(ElementType type, Shape shape, void* data)
      : ConstTensor(type, std::move(shape), data) {}

  template <typename T>
  static Tensor Of(absl::Span<T> values, Shape shape) {
    return Tensor(kElementTypeOf<T>, std::move(shape), values.data());
  }

  template <typename T>
  T* data() const {
    return static_cast<T*>(raw());
  }
  void* raw() const { return const_cast<void*>(ConstTensor::raw()); }

  Tensor Reshaped(Shape shape) const {
    return Tensor(type(), std::move(shape), raw());
  }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_TENSOR_TENSOR_H_
