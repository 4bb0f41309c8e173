#include "tests/conformance/compute/tape_backend.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::testing {
namespace {

class TapeRecording final : public worker::Recording {
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
  worker::cpu::SerialDevice cpu_;
};

}  // namespace

absl::Status TapeDevice::NotRecorded(const char* call) const {
  if (!recording) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, " cannot be recorded"));
}

absl::StatusOr<worker::Buffer> TapeDevice::Allocate(size_t bytes) {
  if (absl::Status s = NotRecorded("Allocate"); !s.ok()) return s;
  if (bytes == 0) return worker::Buffer();
  ++generation;
  return worker::cpu::SerialDevice::Allocate(bytes);
}

absl::Status TapeDevice::Copy(const char* operation, const void* from, void* to,
                              size_t bytes) {
  if (absl::Status s = NotRecorded("a copy"); !s.ok()) return s;
  return worker::cpu::SerialDevice::Copy(operation, from, to, bytes);
}

absl::StatusOr<worker::CopyId> TapeDevice::StartCopy(const char* operation,
                                                     const void* from, void* to,
                                                     size_t bytes) {
  if (absl::Status s = Copy(operation, from, to, bytes); !s.ok()) return s;
  return worker::CopyId{0};
}

absl::Status TapeBackend::BeginRecording() {
  device().recording = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<worker::Recording>> TapeBackend::EndRecording() {
  device().recording = false;
  std::vector<TapeDevice::Kernel> tape = std::exchange(device().tape, {});
  if (broken) return absl::InternalError("the tape is broken");
  return std::make_unique<TapeRecording>(std::move(tape));
}

}  // namespace lockstep::testing
