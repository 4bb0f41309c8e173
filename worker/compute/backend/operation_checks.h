#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_OPERATION_CHECKS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_OPERATION_CHECKS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/kernels/image_shapes.h"
#include "worker/compute/tensor/tensor.h"

// The requirements of the operations on their arguments. Each function returns
// OK or kInvalidArgument with a message such as
//   MatMul: out must be float32 [2,3], got float32 [3,2]
// None reads an element, so none waits for a device.
namespace lockstep::worker {

// The longest side of a matrix: BLAS libraries take sides as int.
inline constexpr int64_t kMaxMatrixSide = INT32_MAX;

// An argument under the name that its operation gives it.
struct Argument {
  const char* name;
  const ConstTensor& tensor;
};

// Returns the sizes of a convolution of these tensors, which must be of rank 4.
ConvShape MakeConvShape(const ConstTensor& images, const ConstTensor& filters,
                        const Conv2DOptions& options);

// `argument` must have this type and shape, and memory unless it is empty.
absl::Status CheckIs(const char* operation, const Argument& argument,
                     ElementType type, const Shape& shape);

// `argument` must be float32 or float64, of this rank, with memory.
absl::Status CheckFloats(const char* operation, const Argument& argument,
                         size_t rank);

// `a` [m,k], `b` [k,n], as stored or transposed, and `out` [m,n].
absl::Status CheckMatMul(const ConstTensor& a, const ConstTensor& b,
                         const MatMulOptions& options, const ConstTensor& out);

// `rows` [..., n] and `vector` [n].
absl::Status CheckBias(const char* operation, const Argument& rows,
                       const Argument& vector);

// Tensors of floats, all of the type and shape of the first one, of any rank.
absl::Status CheckSame(const char* operation, const Argument& first,
                       std::initializer_list<Argument> others);

// Checks the tensors of a copy: both must have memory and the same shape and
// type, of which all are allowed.
absl::Status CheckCopy(const char* operation, const Argument& from,
                       const Argument& to);

// `images` [n,h,w,c], `filters` [kh,kw,c,o] and `out` [n,oh,ow,o], or their
// gradients.
absl::Status CheckConv2D(const char* operation, const Argument& images,
                         const Argument& filters, const Argument& out,
                         const Conv2DOptions& options);

// `in` [n,h,w,c] and `out` [n,ceil(h/window),ceil(w/window),c], or their
// gradients.
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

// The rate must be in [0, 1).
absl::Status CheckDropout(const DropoutOptions& options);

// `table` [rows, n], `out` [ids, n] and ids known to be in [0, rows).
absl::Status CheckEmbed(const char* operation, const Argument& table,
                        const ConstTensor& ids, const Argument& out);

// `qkv` [n,t,3d] and `out` [n,t,d], or their gradients; `heads` must divide d.
absl::Status CheckAttention(const char* operation, const Argument& qkv,
                            int64_t heads, const Argument& out);

// `in` [n,h,w,c], `out` [n,ceil(h/2),ceil(w/2),c], or their gradients, and
// `argmax` (uint8) shaped as `out`.
absl::Status CheckMaxPool2x2(const char* operation, const Argument& in,
                             const Argument& out, const Argument& argmax);

// `logits` [n, classes] and n labels known to be in [0, classes).
absl::Status CheckLabels(const char* operation, const ConstTensor& logits,
                         const ConstTensor& labels);

// The output of an operation that results in one number must be float64 [1].
absl::Status CheckNumber(const char* operation, const Argument& number);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_OPERATION_CHECKS_H_
