#ifndef LOCKSTEP_WORKER_COMPUTE_OPERATION_CHECKS_H_
#define LOCKSTEP_WORKER_COMPUTE_OPERATION_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/compute/compute_backend.h"
#include "worker/compute/tensor.h"

// What every backend demands of its arguments, written once. Each function
// returns OK or kInvalidArgument with a message such as
//   MatMul: out must be float32 [2,3], got float32 [3,2]
namespace lockstep {

// Longest side of a matrix, which is an int to BLAS.
inline constexpr int64_t kMaxMatrixSide = INT32_MAX;

// An argument under the name that its operation gives it.
struct Argument {
  const char* name;
  const ConstTensor& tensor;
};

// `argument` must have this type and shape, and memory unless it is empty.
absl::Status CheckIs(const char* operation, const Argument& argument,
                     ElementType type, const Shape& shape);

// `argument` must be float32 or float64, of this rank, with memory.
absl::Status CheckFloats(const char* operation, const Argument& argument,
                         size_t rank);

absl::Status CheckMatMul(const ConstTensor& a, const ConstTensor& b,
                         const MatMulOptions& options, const ConstTensor& out);

// `rows` [..., n] and `vector` [n].
absl::Status CheckBias(const char* operation, const Argument& rows,
                       const Argument& vector);

// Two tensors of floats of one type and shape, of any rank.
absl::Status CheckSame(const char* operation, const Argument& first,
                       const Argument& second);

// The three tensors of a convolution, whichever of them is sought.
absl::Status CheckConv2D(const char* operation, const Argument& images,
                         const Argument& filters, const Argument& out);

// The three tensors of a pooling, whichever of them is sought.
absl::Status CheckMaxPool2x2(const char* operation, const Argument& in,
                             const Argument& out, const Argument& argmax);

// `logits` [n, classes] and n labels in [0, classes).
absl::Status CheckLabels(const char* operation, const ConstTensor& logits,
                         absl::Span<const int32_t> labels);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_OPERATION_CHECKS_H_
