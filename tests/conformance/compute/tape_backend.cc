#include "tests/conformance/compute/tape_backend.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/compute/backend/kernel_backend_operations.h"

namespace lockstep::testing {
namespace {

class TapeRecording final : public Recording {
 public:
  explicit TapeRecording(std::vector<TapeDevice::Kernel> tape)
      : tape_(std::move(tape)) {}

  absl::Status Replay() override {
    for (const TapeDevice::Kernel& kernel : tape_) {
      if (absl::Status s = kernel(cpu_); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<TapeDevice::Kernel> tape_;
  cpu::SerialDevice cpu_;
};

void Free(void* data) { ::operator delete (data, std::align_val_t{64}); }

}  // namespace

absl::Status TapeBackend::NotRecorded(const char* call) const {
  if (!device().recording) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, " cannot be recorded"));
}

absl::StatusOr<Buffer> TapeBackend::Allocate(size_t bytes) {
  if (absl::Status s = NotRecorded("Allocate"); !s.ok()) return s;
  if (bytes == 0) return Buffer();
  ++generation_;
  return Buffer(::operator new (bytes, std::align_val_t{64}), bytes, Free);
}

absl::Status TapeBackend::DoUpload(const ConstTensor& host, const Tensor& out) {
  if (absl::Status s = NotRecorded("a copy"); !s.ok()) return s;
  if (host.bytes() > 0) std::memcpy(out.raw(), host.raw(), host.bytes());
  return absl::OkStatus();
}

absl::Status TapeBackend::DoDownload(const ConstTensor& values,
                                     const Tensor& host) {
  return DoUpload(values, host);
}

absl::StatusOr<CopyId> TapeBackend::DoStartUpload(const ConstTensor& host,
                                                  const Tensor& out) {
  if (absl::Status s = DoUpload(host, out); !s.ok()) return s;
  return CopyId{0};
}

absl::StatusOr<CopyId> TapeBackend::DoStartDownload(const ConstTensor& values,
                                                    const Tensor& host) {
  return DoStartUpload(values, host);
}

absl::Status TapeBackend::BeginRecording() {
  device().recording = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Recording>> TapeBackend::EndRecording() {
  device().recording = false;
  std::vector<TapeDevice::Kernel> tape = std::exchange(device().tape, {});
  if (broken) return absl::InternalError("the tape is broken");
  return std::make_unique<TapeRecording>(std::move(tape));
}

}  // namespace lockstep::testing
