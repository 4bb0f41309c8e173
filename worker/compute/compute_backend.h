#ifndef LOCKSTEP_WORKER_COMPUTE_COMPUTE_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_COMPUTE_BACKEND_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/buffer.h"
#include "worker/compute/tensor.h"

namespace lockstep {

// out = a b, or out += a b.
struct MatMulOptions {
  bool transpose_a = false;  // `a` is stored as [k, m] instead of [m, k]
  bool transpose_b = false;  // `b` is stored as [n, k] instead of [k, n]
  bool accumulate = false;   // add to `out` instead of overwriting it
};

// ComputeBackend does the arithmetic of training on one kind of device: each
// operation of a forward pass, and its gradient. `x_gradient` always stands
// for the derivative of the loss with respect to x.
//
// The tensors of one call share one element type, float32 or float64, and lie
// in memory that the backend can reach: its own Buffers, or for the CPU any.
// Operations take effect in the order of the calls; a result that is returned
// or downloaded is complete. Equal inputs give equal bits. An empty batch is
// legal. Outputs must not overlap inputs except where said.
//
// Threads: not thread-safe; one backend per thread of training.
// Units:   shapes count elements; images are NHWC.
// Errors:  kInvalidArgument for a tensor of the wrong shape, element type or
//          without memory, naming operation, argument, what it is and what it
//          must be; nothing has been written then. kResourceExhausted when
//          memory is short. These two are not repeated below.
class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  // As in the registry: "cpu".
  virtual const char* name() const = 0;

  // Memory of this backend, 64-byte aligned, contents undefined.
  virtual absl::StatusOr<Buffer> Allocate(size_t bytes) = 0;

  // Copies between ordinary memory and this backend's, any element type.
  absl::Status Upload(const ConstTensor& host, const Tensor& out);
  absl::Status Download(const ConstTensor& values, const Tensor& host);

  // Matrices `a` and `b`, each as stored or transposed.
  absl::Status MatMul(const ConstTensor& a, const ConstTensor& b,
                      const MatMulOptions& options, const Tensor& out);

  // Adds `bias` [n] to each row of `values` [..., n], in place.
  absl::Status AddBias(const ConstTensor& bias, const Tensor& values);
  // Sums the rows of `out_gradient` [..., n] into `bias_gradient` [n].
  absl::Status BiasGradient(const ConstTensor& out_gradient,
                            const Tensor& bias_gradient);

  // out = max(in, 0). NaN stays NaN. `out` may be `in`.
  absl::Status Relu(const ConstTensor& in, const Tensor& out);
  // `out` is what Relu() wrote. `in_gradient` may be `out_gradient`.
  absl::Status ReluGradient(const ConstTensor& out,
                            const ConstTensor& out_gradient,
                            const Tensor& in_gradient);

  // Correlates `images` [n,h,w,c] with `filters` [kh,kw,c,o] into `out`
  // [n,h,w,o]: stride 1, zeros around the image, kh and kw odd.
  absl::Status Conv2D(const ConstTensor& images, const ConstTensor& filters,
                      const Tensor& out);
  absl::Status Conv2DInputGradient(const ConstTensor& filters,
                                   const ConstTensor& out_gradient,
                                   const Tensor& images_gradient);
  absl::Status Conv2DFilterGradient(const ConstTensor& images,
                                    const ConstTensor& out_gradient,
                                    const Tensor& filters_gradient);

  // Largest value of each 2x2 window of `in` [n,h,w,c], stride 2, into `out`
  // [n,ceil(h/2),ceil(w/2),c]; windows at an odd edge are cut off there.
  // `argmax` (uint8, shaped as `out`) receives the position 2 * dy + dx of the
  // largest value, the first one of equals.
  absl::Status MaxPool2x2(const ConstTensor& in, const Tensor& out,
                          const Tensor& argmax);
  absl::Status MaxPool2x2Gradient(const ConstTensor& argmax,
                                  const ConstTensor& out_gradient,
                                  const Tensor& in_gradient);

  // Mean over the batch of -log(softmax(logits)[label]), 0 if it is empty, and
  // its gradient. `logits` are [n, classes]; `labels` lie in ordinary memory.
  //
  //   kInvalidArgument  also: a label outside [0, classes)
  absl::StatusOr<double> SoftmaxCrossEntropy(const ConstTensor& logits,
                                             absl::Span<const int32_t> labels,
                                             const Tensor& logits_gradient);

  // How many rows of `logits` are largest at their label. Of equals the first
  // counts; a row with a NaN never does.
  //
  //   kInvalidArgument  also: a label outside [0, classes)
  absl::StatusOr<int64_t> CountCorrect(const ConstTensor& logits,
                                       absl::Span<const int32_t> labels);

 protected:
  // What a device implements. Arguments have been checked.
  virtual absl::Status DoUpload(const ConstTensor& host, const Tensor& out) = 0;
  virtual absl::Status DoDownload(const ConstTensor& values,
                                  const Tensor& host) = 0;
  virtual absl::Status DoMatMul(const ConstTensor& a, const ConstTensor& b,
                                const MatMulOptions& options,
                                const Tensor& out) = 0;
  virtual absl::Status DoAddBias(const ConstTensor& bias,
                                 const Tensor& values) = 0;
  virtual absl::Status DoBiasGradient(const ConstTensor& out_gradient,
                                      const Tensor& bias_gradient) = 0;
  virtual absl::Status DoRelu(const ConstTensor& in, const Tensor& out) = 0;
  virtual absl::Status DoReluGradient(const ConstTensor& out,
                                      const ConstTensor& out_gradient,
                                      const Tensor& in_gradient) = 0;
  virtual absl::Status DoConv2D(const ConstTensor& images,
                                const ConstTensor& filters,
                                const Tensor& out) = 0;
  virtual absl::Status DoConv2DInputGradient(const ConstTensor& filters,
                                             const ConstTensor& out_gradient,
                                             const Tensor& images_gradient) = 0;
  virtual absl::Status DoConv2DFilterGradient(
      const ConstTensor& images, const ConstTensor& out_gradient,
      const Tensor& filters_gradient) = 0;
  virtual absl::Status DoMaxPool2x2(const ConstTensor& in, const Tensor& out,
                                    const Tensor& argmax) = 0;
  virtual absl::Status DoMaxPool2x2Gradient(const ConstTensor& argmax,
                                            const ConstTensor& out_gradient,
                                            const Tensor& in_gradient) = 0;
  virtual absl::StatusOr<double> DoSoftmaxCrossEntropy(
      const ConstTensor& logits, absl::Span<const int32_t> labels,
      const Tensor& logits_gradient) = 0;
  virtual absl::StatusOr<int64_t> DoCountCorrect(
      const ConstTensor& logits, absl::Span<const int32_t> labels) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_COMPUTE_BACKEND_H_
