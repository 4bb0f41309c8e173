#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/compute_backend.h"
#include "worker/compute/cpu/im2col.h"
#include "worker/compute/scratch.h"

namespace lockstep {

// CpuBackend computes with OpenBLAS and plain loops, on any memory of the
// process. It is also what other backends are compared with.
class CpuBackend : public ComputeBackend {
 public:
  struct Options {
    int threads = 0;  // of OpenBLAS, for the whole process; 0: as it decides
  };

  //   kInvalidArgument  threads outside [0, 1024]
  static absl::StatusOr<std::unique_ptr<CpuBackend>> Make(
      const Options& options);

  const char* name() const override { return "cpu"; }

  //   kResourceExhausted  not enough memory, or more than 1 TiB at once
  absl::StatusOr<Buffer> Allocate(size_t bytes) override;

 protected:
  CpuBackend() = default;

  absl::Status DoUpload(const ConstTensor& host, const Tensor& out) override;
  absl::Status DoDownload(const ConstTensor& values,
                          const Tensor& host) override;
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
                        const Tensor& out) override;
  absl::Status DoConv2DInputGradient(const ConstTensor& filters,
                                     const ConstTensor& out_gradient,
                                     const Tensor& images_gradient) override;
  absl::Status DoConv2DFilterGradient(const ConstTensor& images,
                                      const ConstTensor& out_gradient,
                                      const Tensor& filters_gradient) override;
  absl::Status DoMaxPool2x2(const ConstTensor& in, const Tensor& out,
                            const Tensor& argmax) override;
  absl::Status DoMaxPool2x2Gradient(const ConstTensor& argmax,
                                    const ConstTensor& out_gradient,
                                    const Tensor& in_gradient) override;
  absl::StatusOr<double> DoSoftmaxCrossEntropy(
      const ConstTensor& logits, absl::Span<const int32_t> labels,
      const Tensor& logits_gradient) override;
  absl::StatusOr<int64_t> DoCountCorrect(
      const ConstTensor& logits, absl::Span<const int32_t> labels) override;

 private:
  absl::StatusOr<Tensor> Patches(const cpu::ConvShape& shape, ElementType type);

  Scratch patches_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_
