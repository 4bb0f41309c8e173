#ifndef LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDING_H_
#define LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDING_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::worker {

// Recording is a sequence of operations on the tensors that they were called
// with. It must not outlive its backend, and must not be replayed when memory
// of one of these tensors is gone.
class Recording {
 public:
  virtual ~Recording() = default;

  // Queues all of them at once, as if they were called again.
  virtual absl::Status Replay() = 0;
};

// RecordingDevice is the side of a backend that can record operations. Recorder
// decides when it does.
class RecordingDevice {
 public:
  virtual ~RecordingDevice() = default;

  // A number that changes when an operation, called again, may queue other work
  // or use other memory: when memory was allocated, perhaps where some was
  // freed, and when products got another precision.
  virtual uint64_t generation() const = 0;

  // Operations that this thread calls from now on are recorded instead of
  // queued. Copies, waiting and allocating are not legal meanwhile.
  virtual absl::Status BeginRecording() = 0;

  // Must follow a BeginRecording() that succeeded; operations are queued again,
  // also if it fails.
  //
  //   kInternal  a call in between cannot be recorded
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDING_H_
