#ifndef LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDING_H_
#define LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDING_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::worker {

// Recording is a sequence of operations with the tensors of their calls. It
// must not outlive its backend, and must not be replayed after memory of one of
// these tensors was freed.
//
// Threads: as the backend.
// Errors:  those of the backend.
class Recording {
 public:
  virtual ~Recording() = default;

  // Queues all operations as one, with the effect of calling them again.
  virtual absl::Status Replay() = 0;
};

// RecordingDevice is the side of a backend that can record operations. Recorder
// decides when it does.
//
// Threads: as the backend.
// Errors:  those of the backend.
class RecordingDevice {
 public:
  virtual ~RecordingDevice() = default;

  // Returns a number that changes when an operation, called again, may queue
  // other work or use other memory: after an allocation, which may have
  // followed a release, and after a change of precision.
  virtual uint64_t generation() const = 0;

  // Records the operations that this thread calls from now on instead of
  // queueing them. Copies, waits and allocations are not allowed meanwhile.
  virtual absl::Status BeginRecording() = 0;

  // Must follow a successful BeginRecording(). Operations are queued again
  // afterwards, also if this fails.
  //
  //   kInternal  a call in between cannot be recorded
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDING_H_
