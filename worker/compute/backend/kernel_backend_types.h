#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_TYPES_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_TYPES_H_

#include <cstdint>
#include <type_traits>

#include "worker/compute/kernels/activation.h"
#include "worker/compute/kernels/image_shapes.h"
#include "worker/compute/tensor/tensor.h"

// Types and shapes of tensors, for the operations of KernelBackend.
namespace lockstep::worker {
namespace kernel_backend {

// Calls function(double{}) for kFloat64, else function(float{}).
template <typename Function>
auto ForType(ElementType type, Function function) {
  return type == ElementType::kFloat64 ? function(double{}) : function(float{});
}

// A tensor [..., n] as a matrix: n columns, and the product of all other
// dimensions rows.
inline int64_t ColumnsOf(const ConstTensor& tensor) {
  return tensor.shape().back();
}
inline int64_t RowsOf(const ConstTensor& tensor) {
  const int64_t n = ColumnsOf(tensor);
  return n == 0 ? 0 : tensor.size() / n;
}

// The sizes of a pooling over `in` [images, height, width, channels].
inline PoolShape PoolShapeOf(const ConstTensor& in, int64_t window) {
  return {in.dim(0), in.dim(1), in.dim(2), in.dim(3), window};
}

// Calls function(std::integral_constant<Activation, kind>{}).
template <typename Function>
auto ForKind(Activation kind, Function function) {
  switch (kind) {
    case Activation::kTanh:
      return function(std::integral_constant<Activation, Activation::kTanh>{});
    case Activation::kSigmoid:
      return function(
          std::integral_constant<Activation, Activation::kSigmoid>{});
    case Activation::kGelu:
      break;
  }
  return function(std::integral_constant<Activation, Activation::kGelu>{});
}

}  // namespace kernel_backend

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_TYPES_H_
