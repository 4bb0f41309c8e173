#include "worker/compute/replay/recorder.h"

#include <utility>

namespace lockstep::worker {

void RecordingKey::Add(const ConstTensor& tensor) {
  entries_.push_back({tensor.type(), tensor.shape(), tensor.raw()});
}

RecordingPlan::Action RecordingPlan::Next(const RecordingKey& key,
                                          uint64_t generation) const {
  if (recorded_.Is(key, generation)) return Action::kReplay;
  // Records only the second equal pass: the first one may allocate memory,
  // which a recording must not.
  return before_.Is(key, generation) ? Action::kRecord : Action::kLaunch;
}

void RecordingPlan::Launched(const RecordingKey& key, uint64_t generation) {
  before_ = {true, key, generation};
}

void RecordingPlan::Recorded(const RecordingKey& key, uint64_t generation) {
  recorded_ = {true, key, generation};
  before_.known = false;
}

absl::Status Recorder::Run(const RecordingKey& key, Operations operations) {
  if (device_ == nullptr) return operations();
  switch (plan_.Next(key, device_->generation())) {
    case RecordingPlan::Action::kReplay:
      return Replay();
    case RecordingPlan::Action::kRecord:
      return Record(key, operations);
    case RecordingPlan::Action::kLaunch:
      break;
  }
  return Launch(key, operations);
}

absl::Status Recorder::Launch(const RecordingKey& key, Operations operations) {
  if (absl::Status s = operations(); !s.ok()) return s;
  // The generation after the pass, which may have allocated memory.
  plan_.Launched(key, device_->generation());
  return absl::OkStatus();
}

absl::Status Recorder::Replay() {
  plan_.Replayed();
  if (absl::Status s = recording_->Replay(); !s.ok()) return s;
  ++replays_;
  return absl::OkStatus();
}

absl::Status Recorder::Record(const RecordingKey& key, Operations operations) {
  failure_ = MakeRecording(operations);
  if (!failure_.ok()) {
    device_ = nullptr;
    recording_ = nullptr;
    // The failed recording has run nothing.
    return operations();
  }
  // Recording has queued nothing yet, so this pass is replayed, too.
  plan_.Recorded(key, device_->generation());
  return Replay();
}

absl::Status Recorder::MakeRecording(Operations operations) {
  if (absl::Status s = device_->BeginRecording(); !s.ok()) return s;
  // The recording must be ended even after a failure, or the device stays in
  // it.
  const absl::Status called = operations();
  absl::StatusOr<std::unique_ptr<Recording>> recording =
      device_->EndRecording();
  if (!called.ok()) return called;
  if (!recording.ok()) return recording.status();
  recording_ = *std::move(recording);
  return absl::OkStatus();
}

absl::Status Recorder::TakeFailure() {
  return std::exchange(failure_, absl::OkStatus());
}

}  // namespace lockstep::worker
