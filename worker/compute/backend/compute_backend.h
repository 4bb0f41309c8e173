#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_COMPUTE_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_COMPUTE_BACKEND_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/kernels/activation.h"
#include "worker/compute/tensor/buffer.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep {

// out = a b, or out += a b.
struct MatMulOptions {
  bool transpose_a = false;  // `a` is stored as [k, m] instead of [m, k]
  bool transpose_b = false;  // `b` is stored as [n, k] instead of [k, n]
  bool accumulate = false;   // add to `out` instead of overwriting it
};

// How the kernel of a convolution moves.
struct Conv2DOptions {
  int64_t stride = 1;    // pixels, > 0
  int64_t padding = -1;  // zeros around the image, in pixels; -1: half the
                         // kernel, which has to be odd
};

// Which elements drop out: number i of `key` decides about element i, so the
// gradient needs no record of them.
struct DropoutOptions {
  double rate = 0;  // in [0, 1): the share that becomes 0
  uint64_t key = 0;
};

// The least that a product of matrices keeps of float32: a device that has
// nothing faster, such as a CPU, uses more. All else is in float32.
enum class Precision {
  kFloat32,
  kTf32,      // 11 significant bits of each operand
  kBfloat16,  // 8 of them
};

// A copy between ordinary memory and a device's that runs beside operations.
using CopyId = uint64_t;

class RecordingDevice;  // recording.h

// ComputeBackend does the arithmetic of training on one kind of device: each
// operation of a forward pass, and its gradient. `x_gradient` always stands
// for the derivative of the loss with respect to x.
//
// The tensors of one call share one element type, float32 or float64, and lie
// in memory that the backend can reach: its own Buffers, or for the CPU any.
// Operations take effect in the order of the calls, and none waits for a
// device: what it finds, even if that is one number, is a tensor, complete once
// it has been downloaded. Equal inputs give equal bits. An empty batch is
// legal. Outputs must not overlap inputs except where said. Ids and labels are
// int32 tensors that come from StageIndices().
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

  // Of the products called from now on.
  virtual void set_precision(Precision precision) { precision_ = precision; }
  Precision precision() const { return precision_; }

  // Memory of this backend, 64-byte aligned, contents undefined.
  virtual absl::StatusOr<Buffer> Allocate(size_t bytes) = 0;

  // Copies between ordinary memory and this backend's, any element type.
  absl::Status Upload(const ConstTensor& host, const Tensor& out);
  absl::Status Download(const ConstTensor& values, const Tensor& host);

  // Whether tensors may lie in ordinary memory. If not, they have to be copied
  // to memory of Allocate() first, and Start*() do so beside the operations.
  virtual bool UsesOrdinaryMemory() const = 0;

  // Makes copies of this ordinary memory fast and truly concurrent until the
  // result is destroyed, which has to be before the memory is freed. An empty
  // result if that does nothing here.
  //
  //   kResourceExhausted  the system refuses to pin so much memory
  virtual absl::StatusOr<Buffer> Pin(absl::Span<std::byte> memory) = 0;

  // As Upload(), but only begins it. Operations that are called after
  // UseCopy() read the copied values; `host` must stay as it is until
  // FinishCopy(), and `out` is not touched by operations called before.
  absl::StatusOr<CopyId> StartUpload(const ConstTensor& host,
                                     const Tensor& out);
  // As Download(), of what the operations called so far make of `values`,
  // which must not change until FinishCopy().
  absl::StatusOr<CopyId> StartDownload(const ConstTensor& values,
                                       const Tensor& host);
  virtual absl::Status UseCopy(CopyId copy) = 0;
  // Whether it is complete, without waiting.
  virtual absl::StatusOr<bool> CopyIsDone(CopyId copy) = 0;
  // Waits until it is complete.
  virtual absl::Status FinishCopy(CopyId copy) = 0;

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
  // [n,oh,ow,o], where oh = (h + 2 padding - kh) / stride + 1.
  absl::Status Conv2D(const ConstTensor& images, const ConstTensor& filters,
                      const Tensor& out, const Conv2DOptions& options = {});
  absl::Status Conv2DInputGradient(const ConstTensor& filters,
                                   const ConstTensor& out_gradient,
                                   const Tensor& images_gradient,
                                   const Conv2DOptions& options = {});
  absl::Status Conv2DFilterGradient(const ConstTensor& images,
                                    const ConstTensor& out_gradient,
                                    const Tensor& filters_gradient,
                                    const Conv2DOptions& options = {});

  // Largest value of each 2x2 window of `in` [n,h,w,c], stride 2, into `out`
  // [n,ceil(h/2),ceil(w/2),c]; windows at an odd edge are cut off there.
  // `argmax` (uint8, shaped as `out`) receives the position 2 * dy + dx of the
  // largest value, the first one of equals.
  absl::Status MaxPool2x2(const ConstTensor& in, const Tensor& out,
                          const Tensor& argmax);
  absl::Status MaxPool2x2Gradient(const ConstTensor& argmax,
                                  const ConstTensor& out_gradient,
                                  const Tensor& in_gradient);

  // Mean of each window x window square of `in` [n,h,w,c] into `out`
  // [n,ceil(h/window),ceil(w/window),c]; windows at an edge are cut off there,
  // so that one as large as the image is the mean over all of it.
  absl::Status AveragePool(const ConstTensor& in, int64_t window,
                           const Tensor& out);
  absl::Status AveragePoolGradient(const ConstTensor& out_gradient,
                                   int64_t window, const Tensor& in_gradient);

  // out = f(in), element by element. `out` may be `in`.
  absl::Status Activate(Activation kind, const ConstTensor& in,
                        const Tensor& out);
  // `in` is what Activate() read. `in_gradient` may be `out_gradient`.
  absl::Status ActivateGradient(Activation kind, const ConstTensor& in,
                                const ConstTensor& out_gradient,
                                const Tensor& in_gradient);

  // out = a in + b out; b = 0 overwrites whatever `out` held. A residual add
  // is a = b = 1.
  absl::Status Combine(const ConstTensor& in, double a, double b,
                       const Tensor& out);

  // Zero for a share `rate` of the elements, in / (1 - rate) for the others.
  // Its own gradient. `out` may be `in`.
  absl::Status Dropout(const ConstTensor& in, const DropoutOptions& options,
                       const Tensor& out);

  // Normalises each row of `in` [rows, n] to mean 0 and variance 1, then
  // multiplies by `scale` [n] and adds `shift` [n]. `statistics` [rows, 2]
  // keeps what the gradient needs. `epsilon` > 0 is added to variances.
  absl::Status LayerNorm(const ConstTensor& in, const ConstTensor& scale,
                         const ConstTensor& shift, double epsilon,
                         const Tensor& out, const Tensor& statistics);
  absl::Status LayerNormGradient(const ConstTensor& in,
                                 const ConstTensor& scale,
                                 const ConstTensor& statistics,
                                 const ConstTensor& out_gradient,
                                 const Tensor& in_gradient,
                                 const Tensor& scale_gradient,
                                 const Tensor& shift_gradient);

  // Means, then variances (divided by rows), of the columns of `in` [rows, n]
  // into `statistics` [2, n]; zeros if there are no rows.
  absl::Status BatchStatistics(const ConstTensor& in, const Tensor& statistics);
  // As LayerNorm(), but by column, with the statistics given.
  absl::Status BatchNorm(const ConstTensor& in, const ConstTensor& statistics,
                         const ConstTensor& scale, const ConstTensor& shift,
                         double epsilon, const Tensor& out);
  // Where `statistics` are those of `in`. `in_gradient` may be `out_gradient`.
  absl::Status BatchNormGradient(const ConstTensor& in,
                                 const ConstTensor& statistics,
                                 const ConstTensor& scale, double epsilon,
                                 const ConstTensor& out_gradient,
                                 const Tensor& in_gradient,
                                 const Tensor& scale_gradient,
                                 const Tensor& shift_gradient);

  // Row ids[i] of `table` [rows, n] into row i of `out` [ids, n].
  //
  //   kInvalidArgument  also: ids that are not known to be in [0, rows)
  absl::Status Embed(const ConstTensor& table, const ConstTensor& ids,
                     const Tensor& out);
  absl::Status EmbedGradient(const ConstTensor& ids,
                             const ConstTensor& out_gradient,
                             const Tensor& table_gradient);

  // softmax(Q K^T / sqrt(e)) V for each sequence and head, where position i
  // sees the positions up to i. `qkv` [n, t, 3 d] holds queries, keys and
  // values, each of `heads` vectors of e = d / heads; `out` is [n, t, d], and
  // `probabilities` [n, heads, t, t] keeps the softmax for the gradient.
  absl::Status CausalAttention(const ConstTensor& qkv, int64_t heads,
                               const Tensor& out, const Tensor& probabilities);
  absl::Status CausalAttentionGradient(const ConstTensor& qkv, int64_t heads,
                                       const ConstTensor& probabilities,
                                       const ConstTensor& out_gradient,
                                       const Tensor& qkv_gradient);

  // How many elements are NaN or infinite, into `count`, float64 [1].
  absl::Status CountNonFinite(const ConstTensor& values, const Tensor& count);

  // Mean over the batch of -log(softmax(logits)[label]), 0 if it is empty, into
  // `loss`, float64 [1], and its gradient. `logits` are [n, classes], `labels`
  // [n].
  //
  //   kInvalidArgument  also: labels that are not known to be in [0, classes)
  absl::Status SoftmaxCrossEntropy(const ConstTensor& logits,
                                   const ConstTensor& labels,
                                   const Tensor& loss,
                                   const Tensor& logits_gradient);

  // How many rows of `logits` are largest at their label, into `count`, float64
  // [1]. Of equals the first counts; a row with a NaN never does.
  //
  //   kInvalidArgument  as of SoftmaxCrossEntropy()
  absl::Status CountCorrect(const ConstTensor& logits,
                            const ConstTensor& labels, const Tensor& count);

  // What can record operations and repeat them at once; null if nothing can.
  virtual RecordingDevice* recording_device() { return nullptr; }

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
                                const ConstTensor& filters, const Tensor& out,
                                const Conv2DOptions& options) = 0;
  virtual absl::Status DoConv2DInputGradient(const ConstTensor& filters,
                                             const ConstTensor& out_gradient,
                                             const Tensor& images_gradient,
                                             const Conv2DOptions& options) = 0;
  virtual absl::Status DoConv2DFilterGradient(const ConstTensor& images,
                                              const ConstTensor& out_gradient,
                                              const Tensor& filters_gradient,
                                              const Conv2DOptions& options) = 0;
  virtual absl::Status DoMaxPool2x2(const ConstTensor& in, const Tensor& out,
                                    const Tensor& argmax) = 0;
  virtual absl::Status DoMaxPool2x2Gradient(const ConstTensor& argmax,
                                            const ConstTensor& out_gradient,
                                            const Tensor& in_gradient) = 0;
  virtual absl::Status DoAveragePool(const ConstTensor& in, int64_t window,
                                     const Tensor& out) = 0;
  virtual absl::Status DoAveragePoolGradient(const ConstTensor& out_gradient,
                                             int64_t window,
                                             const Tensor& in_gradient) = 0;
  virtual absl::Status DoActivate(Activation kind, const ConstTensor& in,
                                  const Tensor& out) = 0;
  virtual absl::Status DoActivateGradient(Activation kind,
                                          const ConstTensor& in,
                                          const ConstTensor& out_gradient,
                                          const Tensor& in_gradient) = 0;
  virtual absl::Status DoCombine(const ConstTensor& in, double a, double b,
                                 const Tensor& out) = 0;
  virtual absl::Status DoDropout(const ConstTensor& in,
                                 const DropoutOptions& options,
                                 const Tensor& out) = 0;
  virtual absl::Status DoLayerNorm(const ConstTensor& in,
                                   const ConstTensor& scale,
                                   const ConstTensor& shift, double epsilon,
                                   const Tensor& out,
                                   const Tensor& statistics) = 0;
  virtual absl::Status DoLayerNormGradient(const ConstTensor& in,
                                           const ConstTensor& scale,
                                           const ConstTensor& statistics,
                                           const ConstTensor& out_gradient,
                                           const Tensor& in_gradient,
                                           const Tensor& scale_gradient,
                                           const Tensor& shift_gradient) = 0;
  virtual absl::Status DoBatchStatistics(const ConstTensor& in,
                                         const Tensor& statistics) = 0;
  virtual absl::Status DoBatchNorm(const ConstTensor& in,
                                   const ConstTensor& statistics,
                                   const ConstTensor& scale,
                                   const ConstTensor& shift, double epsilon,
                                   const Tensor& out) = 0;
  virtual absl::Status DoBatchNormGradient(
      const ConstTensor& in, const ConstTensor& statistics,
      const ConstTensor& scale, double epsilon, const ConstTensor& out_gradient,
      const Tensor& in_gradient, const Tensor& scale_gradient,
      const Tensor& shift_gradient) = 0;
  virtual absl::Status DoEmbed(const ConstTensor& table, const ConstTensor& ids,
                               const Tensor& out) = 0;
  virtual absl::Status DoEmbedGradient(const ConstTensor& ids,
                                       const ConstTensor& out_gradient,
                                       const Tensor& table_gradient) = 0;
  virtual absl::Status DoCausalAttention(const ConstTensor& qkv, int64_t heads,
                                         const Tensor& out,
                                         const Tensor& probabilities) = 0;
  virtual absl::Status DoCausalAttentionGradient(
      const ConstTensor& qkv, int64_t heads, const ConstTensor& probabilities,
      const ConstTensor& out_gradient, const Tensor& qkv_gradient) = 0;
  virtual absl::Status DoCountNonFinite(const ConstTensor& values,
                                        const Tensor& count) = 0;
  virtual absl::StatusOr<CopyId> DoStartUpload(const ConstTensor& host,
                                               const Tensor& out) = 0;
  virtual absl::StatusOr<CopyId> DoStartDownload(const ConstTensor& values,
                                                 const Tensor& host) = 0;
  virtual absl::Status DoSoftmaxCrossEntropy(const ConstTensor& logits,
                                             const ConstTensor& labels,
                                             const Tensor& loss,
                                             const Tensor& logits_gradient) = 0;
  virtual absl::Status DoCountCorrect(const ConstTensor& logits,
                                      const ConstTensor& labels,
                                      const Tensor& count) = 0;

 private:
  Precision precision_ = Precision::kFloat32;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_COMPUTE_BACKEND_H_
