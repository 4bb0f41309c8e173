#include "worker/compute/cuda/cuda_backend.h"

#include <utility>

#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/replay/recording.h"

namespace lockstep::worker {
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
  RecordingDevice* recording_device() override { return this; }

 private:
  uint64_t generation() const override { return device().generation(); }
  absl::Status BeginRecording() override { return device().BeginRecording(); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    return device().EndRecording();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeBackend>> MakeCudaBackend(int index) {
  absl::StatusOr<cuda::CudaDevice> device = cuda::CudaDevice::Open(index);
  if (!device.ok()) return device.status();
  return std::make_unique<CudaBackend>(*std::move(device));
}

int CountCudaDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return count;
  cuda::Ignore(error);
  return 0;
}

}  // namespace lockstep::worker
