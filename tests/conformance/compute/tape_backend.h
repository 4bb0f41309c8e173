#ifndef LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_TAPE_BACKEND_H_
#define LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_TAPE_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/cpu/serial_device.h"
#include "worker/compute/replay/recording.h"

namespace lockstep::testing {

// TapeDevice is a Device (worker/compute/backend/kernel_backend.h) on the CPU
// that can put kernels on a tape instead of running them, each with the
// arguments that it was launched with.
class TapeDevice {
 public:
  using Kernel = std::function<absl::Status(worker::cpu::SerialDevice&)>;

  template <typename F>
  absl::Status ForEach(const char* operation, int64_t n, const F& f) {
    return Launch([=](auto& cpu) { return cpu.ForEach(operation, n, f); });
  }
  template <typename F>
  absl::Status Grid(const char* operation, int64_t rows, int64_t n,
                    const F& f) {
    return Launch([=](auto& cpu) { return cpu.Grid(operation, rows, n, f); });
  }
  template <typename F>
  absl::Status Rows(const char* operation, int64_t rows, const F& f) {
    return Launch([=](auto& cpu) { return cpu.Rows(operation, rows, f); });
  }
  template <typename T, typename F>
  absl::Status SumColumns(const char* operation, int64_t rows, int64_t n,
                          const F& f, T* out) {
    return Launch(
        [=](auto& cpu) { return cpu.SumColumns(operation, rows, n, f, out); });
  }
  template <typename T>
  absl::Status Gemm(const char* operation, const worker::StridedGemm& gemm,
                    const T* a, const T* b, T* out) {
    return Launch(
        [=](auto& cpu) { return cpu.Gemm(operation, gemm, a, b, out); });
  }

  static constexpr bool kUsesOrdinaryMemory = false;
  static constexpr bool kHasOwnLoops = false;
  static constexpr bool kHasFusedAttention = false;

  absl::StatusOr<worker::Buffer> Allocate(size_t bytes);
  absl::StatusOr<worker::Buffer> Pin(absl::Span<std::byte>) {
    return worker::Buffer();
  }
  absl::Status Copy(const char* operation, const void* from, void* to,
                    size_t bytes);
  absl::StatusOr<worker::CopyId> StartCopy(const char* operation,
                                           const void* from, void* to,
                                           size_t bytes);
  absl::Status UseCopy(worker::CopyId) { return NotRecorded("UseCopy"); }
  absl::StatusOr<bool> CopyIsDone(worker::CopyId) { return true; }
  absl::Status FinishCopy(worker::CopyId) { return absl::OkStatus(); }

  bool recording = false;
  std::vector<Kernel> tape;
  uint64_t generation = 0;

 private:
  absl::Status NotRecorded(const char* call) const;
  absl::Status Launch(Kernel kernel) {
    if (!recording) return kernel(cpu_);
    tape.push_back(std::move(kernel));
    return absl::OkStatus();
  }

  worker::cpu::SerialDevice cpu_;
};

// TapeBackend is a GPU that records, on the CPU: it has memory of its own, and
// calls that must not be made while a GPU records fail here too.
class TapeBackend final : public worker::KernelBackend<TapeDevice>,
                          private worker::RecordingDevice {
 public:
  TapeBackend() : KernelBackend(TapeDevice()) {}

  const char* name() const override { return "tape"; }
  worker::RecordingDevice* recording_device() override { return this; }

  // Set by tests: EndRecording() fails.
  bool broken = false;

 private:
  uint64_t generation() const override { return device().generation; }
  absl::Status BeginRecording() override;
  absl::StatusOr<std::unique_ptr<worker::Recording>> EndRecording() override;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_TAPE_BACKEND_H_
