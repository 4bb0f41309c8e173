#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_OPERATION_CHECKS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_OPERATION_CHECKS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/kernels/image_shapes.h"
#include "worker/compute/tensor/tensor.h"

// The demands of the operations on their arguments. Each function
// returns OK or kInvalidArgument with a message such as
//   MatMul: out must be float32 [2,3], got float32 [3,2]
namespace lockstep::worker {

// Longest side of a matrix, which is an int to BLAS.
inline constexpr int64_t kMaxMatrixSide = INT32_MAX;

// An argument under the name that its operation gives it.
struct Argument {
  const char* name;
  const ConstTensor& tensor;
};

// The sizes of a convolution of these tensors, which are of rank 4.
ConvShape MakeConvShape(const ConstTensor& images, const ConstTensor& filters,
                        const Conv2DOptions& options);

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

// Tensors of floats, all of the type and shape of the first one, of any rank.
absl::Status CheckSame(const char* operation, const Argument& first,
                       std::initializer_list<Argument> others);

// Both sides of a copy: one type, any, and one shape, with memory.
absl::Status CheckCopy(const char* operation, const Argument& from,
                       const Argument& to);

// The three tensors of a convolution, whichever of them is sought.
absl::Status CheckConv2D(const char* operation, const Argument& images,
                         const Argument& filters, const Argument& out,
                         const Conv2DOptions& options);

// Both tensors of an average pooling, whichever of them is sought.
absl::Status CheckAveragePool(const char* operation, const Argument& in,
                              int64_t window, const Argument& out);

// `in` [rows, n], `statistics`, and vectors [n], all of one type. `by_row`
// statistics are [rows, 2], others [2, n].
absl::Status CheckNorm(const char* operation, const Argument& in, bool by_row,
                       const Argument& statistics,
                       std::initializer_list<Argument> vectors);

// `value` must be above 0 and finite.
absl::Status CheckPositive(const char* operation, const char* name,
                           double value);

absl::Status CheckDropout(const DropoutOptions& options);

// `table` [rows, n], `out` [ids, n] and ids known to be in [0, rows).
absl::Status CheckEmbed(const char* operation, const Argument& table,
                        const ConstTensor& ids, const Argument& out);

// The queries, keys and values of an attention, and its result or the gradient
// of that.
absl::Status CheckAttention(const char* operation, const Argument& qkv,
                            int64_t heads, const Argument& out);

// The three tensors of a pooling, whichever of them is sought.
absl::Status CheckMaxPool2x2(const char* operation, const Argument& in,
                             const Argument& out, const Argument& argmax);

// `logits` [n, classes] and n labels known to be in [0, classes).
absl::Status CheckLabels(const char* operation, const ConstTensor& logits,
                         const ConstTensor& labels);

// Where an operation puts one number: float64 [1].
absl::Status CheckNumber(const char* operation, const Argument& number);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_OPERATION_CHECKS_H_
