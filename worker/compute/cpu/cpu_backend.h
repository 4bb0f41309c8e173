#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/cpu/serial_device.h"

namespace lockstep {

// CpuBackend computes with OpenBLAS and plain loops, on any memory of the
// process. It is also what other backends are compared with. Operations that
// a processor does better than an element at a time have loops of their own.
class CpuBackend : public KernelBackend<cpu::SerialDevice> {
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

  bool UsesOrdinaryMemory() const override { return true; }
  absl::StatusOr<Buffer> Pin(absl::Span<std::byte>) override {
    return Buffer();
  }
  // Copies are complete when they have been started.
  absl::Status UseCopy(CopyId) override { return absl::OkStatus(); }
  absl::StatusOr<bool> CopyIsDone(CopyId) override { return true; }
  absl::Status FinishCopy(CopyId) override { return absl::OkStatus(); }

 protected:
  CpuBackend() : KernelBackend(cpu::SerialDevice()) {}

  absl::Status DoUpload(const ConstTensor& host, const Tensor& out) override;
  absl::Status DoDownload(const ConstTensor& values,
                          const Tensor& host) override;
  absl::StatusOr<CopyId> DoStartUpload(const ConstTensor& host,
                                       const Tensor& out) override;
  absl::StatusOr<CopyId> DoStartDownload(const ConstTensor& values,
                                         const Tensor& host) override;
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
  absl::Status DoEmbedGradient(const ConstTensor& ids,
                               const ConstTensor& out_gradient,
                               const Tensor& table_gradient) override;

 private:
  absl::StatusOr<Tensor> Patches(const ConvShape& shape, ElementType type);

  Scratch patches_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_
