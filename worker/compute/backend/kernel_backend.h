#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/kernels/image_shapes.h"
#include "worker/compute/kernels/strided_gemm.h"

namespace lockstep {

// KernelBackend is every operation in terms of a few that a Device has, so that
// what is computed, in which order and in how much memory is written once:
//
//   ForEach(op, n, f)               f(i) for each i in [0, n)
//   Grid(op, rows, n, f)            f(row, column) for each of them
//   Rows(op, rows, f)               f(group, row), see kernels/rows.h
//   SumColumns(op, rows, n, f, out) out[column] = sum of f(row, column)
//   Gemm(op, gemm, a, b, out)       see kernels/strided_gemm.h
//
// Each returns a Status; `op` names the operation in it. `f` is one of the
// functions in kernels/. Calls take effect in order. Empty ranges are legal.
//
// What is left to a derived class is memory and copies. A member is defined in
// kernel_backend_operations.h, which only the sources of backends include.
template <typename Device>
class KernelBackend : public ComputeBackend {
 protected:
  explicit KernelBackend(Device device) : device_(std::move(device)) {}

  Device& device() { return device_; }
  const Device& device() const { return device_; }

  absl::Status DoMatMul(const ConstTensor& a, const ConstTensor& b,
                        const MatMulOptions& options,
                        const Tensor& out) override;
  absl::Status DoAddBias(const ConstTensor& bias,
                         const Tensor& values) override;
  absl::Status DoBiasGradient(const ConstTensor& out_gradient,
                              const Tensor& bias_gradient) override;
  absl::Status DoRelu(const ConstTensor& in, const Tensor& out) override;
  absl::Status DoReluGradient(const ConstTensor& out,
                              const ConstTensor& out_gradient,
                              const Tensor& in_gradient) override;
  absl::Status DoConv2D(const ConstTensor& images, const ConstTensor& filters,
                        const Tensor& out,
                        const Conv2DOptions& options) override;
  absl::Status DoConv2DInputGradient(const ConstTensor& filters,
                                     const ConstTensor& out_gradient,
                                     const Tensor& images_gradient,
                                     const Conv2DOptions& options) override;
  absl::Status DoConv2DFilterGradient(const ConstTensor& images,
                                      const ConstTensor& out_gradient,
                                      const Tensor& filters_gradient,
                                      const Conv2DOptions& options) override;
  absl::Status DoMaxPool2x2(const ConstTensor& in, const Tensor& out,
                            const Tensor& argmax) override;
  absl::Status DoMaxPool2x2Gradient(const ConstTensor& argmax,
                                    const ConstTensor& out_gradient,
                                    const Tensor& in_gradient) override;
  absl::Status DoAveragePool(const ConstTensor& in, int64_t window,
                             const Tensor& out) override;
  absl::Status DoAveragePoolGradient(const ConstTensor& out_gradient,
                                     int64_t window,
                                     const Tensor& in_gradient) override;
  absl::Status DoActivate(Activation kind, const ConstTensor& in,
                          const Tensor& out) override;
  absl::Status DoActivateGradient(Activation kind, const ConstTensor& in,
                                  const ConstTensor& out_gradient,
                                  const Tensor& in_gradient) override;
  absl::Status DoCombine(const ConstTensor& in, double a, double b,
                         const Tensor& out) override;
  absl::Status DoDropout(const ConstTensor& in, const DropoutOptions& options,
                         const Tensor& out) override;
  absl::Status DoLayerNorm(const ConstTensor& in, const ConstTensor& scale,
                           const ConstTensor& shift, double epsilon,
                           const Tensor& out,
                           const Tensor& statistics) override;
  absl::Status DoLayerNormGradient(const ConstTensor& in,
                                   const ConstTensor& scale,
                                   const ConstTensor& statistics,
                                   const ConstTensor& out_gradient,
                                   const Tensor& in_gradient,
                                   const Tensor& scale_gradient,
                                   const Tensor& shift_gradient) override;
  absl::Status DoBatchStatistics(const ConstTensor& in,
                                 const Tensor& statistics) override;
  absl::Status DoBatchNorm(const ConstTensor& in, const ConstTensor& statistics,
                           const ConstTensor& scale, const ConstTensor& shift,
                           double epsilon, const Tensor& out) override;
  absl::Status DoBatchNormGradient(const ConstTensor& in,
                                   const ConstTensor& statistics,
                                   const ConstTensor& scale, double epsilon,
                                   const ConstTensor& out_gradient,
                                   const Tensor& in_gradient,
                                   const Tensor& scale_gradient,
                                   const Tensor& shift_gradient) override;
  absl::Status DoEmbed(const ConstTensor& table, const ConstTensor& ids,
                       const Tensor& out) override;
  absl::Status DoEmbedGradient(const ConstTensor& ids,
                               const ConstTensor& out_gradient,
                               const Tensor& table_gradient) override;
  absl::Status DoCausalAttention(const ConstTensor& qkv, int64_t heads,
                                 const Tensor& out,
                                 const Tensor& probabilities) override;
  absl::Status DoCausalAttentionGradient(const ConstTensor& qkv, int64_t heads,
                                         const ConstTensor& probabilities,
                                         const ConstTensor& out_gradient,
                                         const Tensor& qkv_gradient) override;
  absl::Status DoCountNonFinite(const ConstTensor& values,
                                const Tensor& count) override;
  absl::Status DoSoftmaxCrossEntropy(const ConstTensor& logits,
                                     const ConstTensor& labels,
                                     const Tensor& loss,
                                     const Tensor& logits_gradient) override;
  absl::Status DoCountCorrect(const ConstTensor& logits,
                              const ConstTensor& labels,
                              const Tensor& count) override;

 private:
  // As many images at a time as their patches fit kMaxPatchElements.
  static constexpr int64_t kMaxPatchElements = int64_t{1} << 26;
  template <typename Visit>
  absl::Status ForEachGroup(const ConvShape& shape, ElementType type,
                            Visit visit);
  // Sums doubles that a kernel left in `values`, and divides the sum.
  absl::Status Total(const char* operation, const Tensor& values,
                     double divisor, const Tensor& out);

  Device device_;
  Scratch patches_;
  Scratch rows_;  // a double for each row
  Scratch scores_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_H_
