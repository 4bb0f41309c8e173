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

namespace lockstep::worker {

// The form in which MatMul() reads its operands and writes its result.
struct MatMulOptions {
  bool transpose_a = false;  // `a` is stored as [k, m] instead of [m, k]
  bool transpose_b = false;  // `b` is stored as [n, k] instead of [k, n]
  bool accumulate = false;   // out += a b instead of out = a b
};

// The movement of a convolution's kernel over the image.
struct Conv2DOptions {
  int64_t stride = 1;    // pixels, in [1, 2^20]
  int64_t padding = -1;  // zeros around the image, in pixels, in [0, 2^20]; -1:
                         // half the kernel, whose sides must be odd
};

// The choice of elements that become 0: random number i of `key` decides about
// element i, so the gradient needs no record of the choice.
struct DropoutOptions {
  double rate = 0;  // in [0, 1): the share that becomes 0
  uint64_t key = 0;
};

// The least precision of the products of float32 matrices; a device for which a
// lower precision is no faster, such as a CPU, keeps more. All other operations
// are exact to float32.
enum class Precision {
  kFloat32,
  kTf32,      // 11 significant bits of each operand
  kBfloat16,  // 8 significant bits of each operand
};

// Names a copy between ordinary memory and a device's that runs beside
// operations.
using CopyId = uint64_t;

class RecordingDevice;  // recording.h

// ComputeBackend does the arithmetic of training on one kind of device: each
// operation of a forward pass, and its gradient. `x_gradient` always means the
// derivative of the loss with respect to x. A gradient operation overwrites its
// results; only MatMul() with `accumulate` and Combine() with b != 0 add to
// their output.
//
// Tensors are dense, in row-major order. All tensors of one call have one
// element type, float32 or float64, unless said, and lie in memory that the
// backend can access: its own Buffers, or any memory for the CPU. Ids and
// labels are int32 tensors from StageIndices(). Outputs must not overlap inputs
// unless said. An empty batch is legal.
//
// Operations take effect in the order of the calls. None waits for a device:
// every result, even a single number, is a tensor, which is complete once it
// has been downloaded. Equal inputs give equal bits on one kind of device.
//
// Threads: not thread-safe; one backend per thread of training.
// Units:   shapes count elements; images are NHWC: [n,h,w,c] is n images of h
//          rows of w pixels of c values.
// Errors:  kInvalidArgument for a tensor of the wrong shape, element type or
//          without memory, naming operation, argument, what it is and what it
//          must be; nothing has been written then. kResourceExhausted when
//          memory is short. These two are not repeated below.
class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  // The name in the registry, such as "cpu".
  virtual const char* name() const = 0;

  // Sets the precision of the products that are called from now on.
  virtual void set_precision(Precision precision) { precision_ = precision; }
  Precision precision() const { return precision_; }

  // Returns memory of this backend, 64-byte aligned, contents undefined.
  virtual absl::StatusOr<Buffer> Allocate(size_t bytes) = 0;

  // Copy between ordinary memory and this backend's; complete on return. Both
  // tensors must have one shape and one element type, which may be any.
  virtual absl::Status Upload(const ConstTensor& host, const Tensor& out) = 0;
  virtual absl::Status Download(const ConstTensor& values,
                                const Tensor& host) = 0;

  // True if tensors may lie in ordinary memory. Otherwise they must be copied
  // to memory of Allocate() first; StartUpload() and StartDownload() do so
  // beside the operations.
  virtual bool UsesOrdinaryMemory() const = 0;

  // Makes copies of this ordinary memory fast and truly concurrent until the
  // result is destroyed, which must happen before the memory is freed. Returns
  // an empty Buffer if the backend does not need it.
  //
  //   kResourceExhausted  the system refuses to pin so much memory
  virtual absl::StatusOr<Buffer> Pin(absl::Span<std::byte> memory) = 0;

  // Starts an Upload(). Operations that are called after UseCopy() read the
  // copied values. `host` must not change before FinishCopy(), and `out` must
  // not be used by operations called before UseCopy(), except those called
  // before StartUpload().
  virtual absl::StatusOr<CopyId> StartUpload(const ConstTensor& host,
                                             const Tensor& out) = 0;
  // Starts a Download() of `values` as the operations called so far leave them.
  // `values` must not change before FinishCopy().
  virtual absl::StatusOr<CopyId> StartDownload(const ConstTensor& values,
                                               const Tensor& host) = 0;
  // Makes the operations called from now on wait for the copy.
  virtual absl::Status UseCopy(CopyId copy) = 0;
  // True if the copy is complete; does not wait.
  virtual absl::StatusOr<bool> CopyIsDone(CopyId copy) = 0;
  // Waits until the copy is complete. Must be called once for each copy.
  virtual absl::Status FinishCopy(CopyId copy) = 0;

  // out = a b, or out += a b: `a` [m,k] and `b` [k,n], each as stored or
  // transposed, `out` [m,n]. Each side is at most 2^31 - 1.
  virtual absl::Status MatMul(const ConstTensor& a, const ConstTensor& b,
                              const MatMulOptions& options,
                              const Tensor& out) = 0;

  // Adds `bias` [n] to each row of `values` [..., n], in place.
  virtual absl::Status AddBias(const ConstTensor& bias,
                               const Tensor& values) = 0;
  // Sums the rows of `out_gradient` [..., n] into `bias_gradient` [n].
  virtual absl::Status BiasGradient(const ConstTensor& out_gradient,
                                    const Tensor& bias_gradient) = 0;

  // out = max(in, 0), both of one shape. NaN stays NaN. `out` may be `in`.
  virtual absl::Status Relu(const ConstTensor& in, const Tensor& out) = 0;
  // The gradient of the input, all of one shape; `out` is the result of Relu().
  // Where `out` is 0 or NaN the gradient is 0. `in_gradient` may be
  // `out_gradient`.
  virtual absl::Status ReluGradient(const ConstTensor& out,
                                    const ConstTensor& out_gradient,
                                    const Tensor& in_gradient) = 0;

  // Correlates `images` [n,h,w,c] with `filters` [kh,kw,c,o] into `out`
  // [n,oh,ow,o], where oh = (h + 2 padding - kh) / stride + 1 rounded down, and
  // ow likewise.
  virtual absl::Status Conv2D(const ConstTensor& images,
                              const ConstTensor& filters, const Tensor& out,
                              const Conv2DOptions& options = {}) = 0;
  // The gradient of the images: `filters` [kh,kw,c,o] and `out_gradient`
  // [n,oh,ow,o] into `images_gradient` [n,h,w,c]. `options` must be those of
  // Conv2D().
  virtual absl::Status Conv2DInputGradient(
      const ConstTensor& filters, const ConstTensor& out_gradient,
      const Tensor& images_gradient, const Conv2DOptions& options = {}) = 0;
  // The gradient of the filters: `images` [n,h,w,c] and `out_gradient`
  // [n,oh,ow,o] into `filters_gradient` [kh,kw,c,o], summed over the images.
  // `options` must be those of Conv2D().
  virtual absl::Status Conv2DFilterGradient(
      const ConstTensor& images, const ConstTensor& out_gradient,
      const Tensor& filters_gradient, const Conv2DOptions& options = {}) = 0;

  // The largest value of each 2x2 window of `in` [n,h,w,c], stride 2, into
  // `out` [n,ceil(h/2),ceil(w/2),c]; windows at an odd edge have only the
  // pixels inside. `argmax` (uint8, shaped as `out`) receives the position 2 *
  // dy + dx of the largest value, the first one of equals. A NaN counts as the
  // largest.
  virtual absl::Status MaxPool2x2(const ConstTensor& in, const Tensor& out,
                                  const Tensor& argmax) = 0;
  // The gradient of the input: `argmax` and `out_gradient` are shaped as `out`
  // of MaxPool2x2(); `in_gradient` [n,h,w,c] becomes zero except where a window
  // had its largest value.
  virtual absl::Status MaxPool2x2Gradient(const ConstTensor& argmax,
                                          const ConstTensor& out_gradient,
                                          const Tensor& in_gradient) = 0;

  // The mean of each window x window square of `in` [n,h,w,c] into `out`
  // [n,ceil(h/window),ceil(w/window),c]. Windows at an edge have only the
  // pixels inside, so one as large as the image is the mean over all of it.
  // `window` is in [1, 2^20] pixels.
  virtual absl::Status AveragePool(const ConstTensor& in, int64_t window,
                                   const Tensor& out) = 0;
  // The gradient of the input: `out_gradient` is shaped as `out` of
  // AveragePool(), `in_gradient` is [n,h,w,c].
  virtual absl::Status AveragePoolGradient(const ConstTensor& out_gradient,
                                           int64_t window,
                                           const Tensor& in_gradient) = 0;

  // out = f(in), element by element, both of one shape. NaN stays NaN, and GELU
  // of -infinity is NaN. `out` may be `in`.
  virtual absl::Status Activate(Activation kind, const ConstTensor& in,
                                const Tensor& out) = 0;
  // The gradient of the input, in_gradient = out_gradient f'(in), all of one
  // shape; `in` is the argument of Activate(). `in_gradient` may be
  // `out_gradient`.
  virtual absl::Status ActivateGradient(Activation kind, const ConstTensor& in,
                                        const ConstTensor& out_gradient,
                                        const Tensor& in_gradient) = 0;

  // out = a in + b out, both of one shape. With b = 0 the contents of `out` do
  // not matter, even NaN. A residual add is a = b = 1.
  virtual absl::Status Combine(const ConstTensor& in, double a, double b,
                               const Tensor& out) = 0;

  // Sets a share `rate` of the elements of `out` to zero and the others to in /
  // (1 - rate), both tensors of one shape. The gradient is the same operation
  // on `out_gradient` with the same options. Zeros do not depend on `in`, even
  // where it is NaN. `out` may be `in`. Source: "Dropout" (Srivastava et al.
  // 2014); the division keeps the expected sum, so evaluation changes nothing.
  virtual absl::Status Dropout(const ConstTensor& in,
                               const DropoutOptions& options,
                               const Tensor& out) = 0;

  // Normalises each row of `in` [rows,n] to mean 0 and variance 1, then
  // multiplies by `scale` [n] and adds `shift` [n], into `out` [rows,n].
  // `statistics` [rows,2] receives each row's mean and reciprocal standard
  // deviation for the gradient. `epsilon` > 0 is added to variances, which are
  // sums of squares divided by n. Source: "Layer Normalization" (Ba, Kiros,
  // Hinton 2016).
  virtual absl::Status LayerNorm(const ConstTensor& in,
                                 const ConstTensor& scale,
                                 const ConstTensor& shift, double epsilon,
                                 const Tensor& out,
                                 const Tensor& statistics) = 0;
  // The gradients of LayerNorm(): `in`, `out_gradient` and `in_gradient` are
  // [rows,n], `statistics` [rows,2] as LayerNorm() wrote them, all others [n],
  // summed over the rows.
  virtual absl::Status LayerNormGradient(const ConstTensor& in,
                                         const ConstTensor& scale,
                                         const ConstTensor& statistics,
                                         const ConstTensor& out_gradient,
                                         const Tensor& in_gradient,
                                         const Tensor& scale_gradient,
                                         const Tensor& shift_gradient) = 0;

  // The means, then the variances (sums of squares divided by rows) of the
  // columns of `in` [rows,n] into `statistics` [2,n]; zeros if there are no
  // rows.
  virtual absl::Status BatchStatistics(const ConstTensor& in,
                                       const Tensor& statistics) = 0;
  // Normalises each column of `in` [rows,n] by `statistics` [2,n], laid out as
  // BatchStatistics() writes them, then multiplies by `scale` [n] and adds
  // `shift` [n], into `out` [rows,n]. `epsilon` > 0 is added to variances.
  // Source: "Batch Normalization" (Ioffe, Szegedy 2015).
  virtual absl::Status BatchNorm(const ConstTensor& in,
                                 const ConstTensor& statistics,
                                 const ConstTensor& scale,
                                 const ConstTensor& shift, double epsilon,
                                 const Tensor& out) = 0;
  // The gradients of BatchNorm(). `statistics` must be those of `in` itself, as
  // the gradient passes through them too. Shapes as of BatchNorm(), gradients
  // as their tensors; those of scale and shift are summed over the rows.
  // `in_gradient` may be `out_gradient`.
  virtual absl::Status BatchNormGradient(
      const ConstTensor& in, const ConstTensor& statistics,
      const ConstTensor& scale, double epsilon, const ConstTensor& out_gradient,
      const Tensor& in_gradient, const Tensor& scale_gradient,
      const Tensor& shift_gradient) = 0;

  // Copies row ids[i] of `table` [rows,n] into row i of `out` [count,n], for
  // `ids` [count].
  //
  //   kInvalidArgument  also: ids that are not known to be in [0, rows)
  virtual absl::Status Embed(const ConstTensor& table, const ConstTensor& ids,
                             const Tensor& out) = 0;
  // Sums the rows of `out_gradient` [count,n] by id into `table_gradient`
  // [rows,n], in the order of `ids` [count]; rows without an id become 0.
  virtual absl::Status EmbedGradient(const ConstTensor& ids,
                                     const ConstTensor& out_gradient,
                                     const Tensor& table_gradient) = 0;

  // softmax(Q K^T / sqrt(e)) V for each sequence and head, where position i
  // sees the positions up to i. `qkv` [n,t,3d] holds queries, keys and values,
  // each of `heads` vectors of e = d / heads; `out` is [n,t,d]. `kept`, of type
  // and shape KeptByAttention(), receives what the gradient needs. `heads` must
  // divide d. Source: "Attention Is All You Need" (Vaswani et al. 2017).
  virtual absl::Status CausalAttention(const ConstTensor& qkv, int64_t heads,
                                       const Tensor& out,
                                       const Tensor& kept) = 0;
  // `qkv`, `out` and `kept` must be as CausalAttention() left them; gradients
  // are shaped as their tensors.
  virtual absl::Status CausalAttentionGradient(const ConstTensor& qkv,
                                               int64_t heads,
                                               const ConstTensor& out,
                                               const ConstTensor& kept,
                                               const ConstTensor& out_gradient,
                                               const Tensor& qkv_gradient) = 0;
  // Returns the shape of the `kept` of CausalAttention(): that of the softmax,
  // [n,heads,t,t], or, on a device that computes it again, that of the
  // logarithm of the sum of each of its rows, [n,heads,t]. `qkv` and `heads`
  // must be valid for CausalAttention().
  virtual Shape KeptByAttention(const ConstTensor& qkv,
                                int64_t heads) const = 0;

  // Writes the number of elements of `values`, of any shape, that are NaN or
  // infinite to `count`, float64 [1].
  virtual absl::Status CountNonFinite(const ConstTensor& values,
                                      const Tensor& count) = 0;

  // Writes the mean over the batch of -log(softmax(logits)[label]), 0 if it is
  // empty, to `loss`, float64 [1], and its gradient to `logits_gradient`,
  // shaped as `logits` [n,classes]. `labels` are [n]. A row with a NaN or
  // +infinity makes the loss and its own gradient NaN.
  //
  //   kInvalidArgument  also: labels that are not known to be in [0, classes)
  virtual absl::Status SoftmaxCrossEntropy(const ConstTensor& logits,
                                           const ConstTensor& labels,
                                           const Tensor& loss,
                                           const Tensor& logits_gradient) = 0;

  // Writes the number of rows of `logits` [n,classes] that are largest at their
  // label of `labels` [n] to `count`, float64 [1]. The first of equals counts;
  // a row with a NaN never does.
  //
  //   kInvalidArgument  as of SoftmaxCrossEntropy()
  virtual absl::Status CountCorrect(const ConstTensor& logits,
                                    const ConstTensor& labels,
                                    const Tensor& count) = 0;

  // Returns the interface that records operations and repeats them as one; null
  // if this backend has none. Borrowed from this object.
  virtual RecordingDevice* recording_device() { return nullptr; }

 private:
  Precision precision_ = Precision::kFloat32;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_COMPUTE_BACKEND_H_
