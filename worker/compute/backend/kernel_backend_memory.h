#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_MEMORY_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/operation_checks.h"

namespace lockstep::worker {

// KernelMemory has the memory and the copies of KernelBackend, and its device.
//
// Threads: as ComputeBackend.
template <typename Device>
class KernelMemory : public ComputeBackend {
 public:
  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    return device_.Allocate(bytes);
  }

  bool UsesOrdinaryMemory() const override {
    return Device::kUsesOrdinaryMemory;
  }

  absl::StatusOr<Buffer> Pin(absl::Span<std::byte> memory) override {
    return device_.Pin(memory);
  }

  // Copies from memory of the process to the device, of one type and shape;
  // complete on return.
  absl::Status Upload(const ConstTensor& host, const Tensor& out) override {
    if (absl::Status s = CheckCopy("Upload", {"host", host}, {"out", out});
        !s.ok()) {
      return s;
    }
    return device_.Copy("Upload", host.raw(), out.raw(), host.bytes());
  }

  // Copies from the device to memory of the process; complete on return.
  absl::Status Download(const ConstTensor& values,
                        const Tensor& host) override {
    if (absl::Status s =
            CheckCopy("Download", {"values", values}, {"host", host});
        !s.ok()) {
      return s;
    }
    return device_.Copy("Download", values.raw(), host.raw(), host.bytes());
  }

  // As Upload() and Download(), complete only after FinishCopy(), or once
  // CopyIsDone(): `host` must stay as it is until then.
  absl::StatusOr<CopyId> StartUpload(const ConstTensor& host,
                                     const Tensor& out) override {
    if (absl::Status s = CheckCopy("StartUpload", {"host", host}, {"out", out});
        !s.ok()) {
      return s;
    }
    return device_.StartCopy("StartUpload", host.raw(), out.raw(),
                             host.bytes());
  }

  absl::StatusOr<CopyId> StartDownload(const ConstTensor& values,
                                       const Tensor& host) override {
    if (absl::Status s =
            CheckCopy("StartDownload", {"values", values}, {"host", host});
        !s.ok()) {
      return s;
    }
    return device_.StartCopy("StartDownload", values.raw(), host.raw(),
                             host.bytes());
  }

  absl::Status UseCopy(CopyId copy) override { return device_.UseCopy(copy); }
  absl::StatusOr<bool> CopyIsDone(CopyId copy) override {
    return device_.CopyIsDone(copy);
  }
  absl::Status FinishCopy(CopyId copy) override {
    return device_.FinishCopy(copy);
  }

 protected:
  explicit KernelMemory(Device device) : device_(std::move(device)) {}

  Device device_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_MEMORY_H_
