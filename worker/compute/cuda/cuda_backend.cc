#include "worker/compute/cuda/cuda_backend.h"

#include <utility>

#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/backend/kernel_backend_operations.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/replay/recording.h"

namespace lockstep {
namespace {

class CudaBackend final : public KernelBackend<cuda::CudaDevice>,
                          private RecordingDevice {
 public:
  explicit CudaBackend(cuda::CudaDevice device)
      : KernelBackend(std::move(device)) {}

  const char* name() const override { return "cuda"; }
  void set_precision(Precision precision) override {
    ComputeBackend::set_precision(precision);
    device().set_precision(precision);
  }
  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    return device().Allocate(bytes);
  }
  bool UsesOrdinaryMemory() const override { return false; }
  absl::StatusOr<Buffer> Pin(absl::Span<std::byte> memory) override {
    return device().Pin(memory);
  }
  absl::Status UseCopy(CopyId copy) override { return device().UseCopy(copy); }
  absl::StatusOr<bool> CopyIsDone(CopyId copy) override {
    return device().CopyIsDone(copy);
  }
  absl::Status FinishCopy(CopyId copy) override {
    return device().FinishCopy(copy);
  }
  RecordingDevice* recording_device() override { return this; }

 protected:
  absl::Status DoUpload(const ConstTensor& host, const Tensor& out) override {
    return device().Copy("Upload", host.raw(), out.raw(), host.bytes());
  }
  absl::Status DoDownload(const ConstTensor& values,
                          const Tensor& host) override {
    return device().Copy("Download", values.raw(), host.raw(), host.bytes());
  }
  absl::StatusOr<CopyId> DoStartUpload(const ConstTensor& host,
                                       const Tensor& out) override {
    return device().StartCopy("StartUpload", host.raw(), out.raw(),
                              host.bytes());
  }
  absl::StatusOr<CopyId> DoStartDownload(const ConstTensor& values,
                                         const Tensor& host) override {
    return device().StartCopy("StartDownload", values.raw(), host.raw(),
                              host.bytes());
  }

 private:
  uint64_t generation() const override { return device().generation(); }
  absl::Status BeginRecording() override { return device().BeginRecording(); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    return device().EndRecording();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeBackend>> MakeCudaBackend() {
  absl::StatusOr<cuda::CudaDevice> device = cuda::CudaDevice::Open();
  if (!device.ok()) return device.status();
  return std::make_unique<CudaBackend>(*std::move(device));
}

}  // namespace lockstep
