#ifndef LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDER_H_
#define LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/replay/recording.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep::worker {

// RecordingKey identifies passes that queue the same operations: it holds the
// type, shape and address of each tensor that a pass is given.
//
// Threads: not thread-safe.
class RecordingKey {
 public:
  void Add(const ConstTensor& tensor);

  bool operator==(const RecordingKey& other) const = default;

 private:
  struct Entry {
    ElementType type;
    Shape shape;
    const void* address;

    bool operator==(const Entry& other) const = default;
  };

  std::vector<Entry> entries_;
};

// RecordingPlan decides whether a pass is launched, recorded or replayed. A
// pass is recorded if the one before had the same key, because that one has
// allocated the memory for both; it is replayed while the recording's key and
// generation (see RecordingDevice) are unchanged. There is one recording: if
// passes of two kinds alternate, the first kind keeps it.
//
// Threads: not thread-safe.
class RecordingPlan {
 public:
  enum class Action { kLaunch, kRecord, kReplay };

  // `generation` must be the device's current one.
  Action Next(const RecordingKey& key, uint64_t generation) const;

  // Must be called after each pass with the action taken and the generation
  // after it.
  void Launched(const RecordingKey& key, uint64_t generation);
  void Recorded(const RecordingKey& key, uint64_t generation);
  void Replayed() { before_.known = false; }

 private:
  struct Pass {
    bool known = false;
    RecordingKey key = {};
    uint64_t generation = 0;

    bool Is(const RecordingKey& other, uint64_t now) const {
      return known && generation == now && key == other;
    }
  };

  Pass before_;    // the last pass, if it was launched
  Pass recorded_;  // the pass that the recording repeats
};

// Recorder runs passes; if the backend can record, it repeats equal ones as one
// launch.
//
// Threads: as the backend. Borrows: the backend, which must outlive it.
class Recorder {
 public:
  using Operations = absl::FunctionRef<absl::Status()>;

  explicit Recorder(ComputeBackend& backend)
      : device_(backend.recording_device()) {}

  // Has the effect of calling `operations`. `operations` must only call
  // operations of the backend, and the same ones for equal keys; it is called
  // once, not at all (a replay), or twice (if the first call could not be
  // recorded).
  //
  //   errors of `operations` and of the backend
  absl::Status Run(const RecordingKey& key, Operations operations);

  // Returns the number of passes that were replayed instead of launched.
  int64_t replays() const { return replays_; }

  // Returns the reason why passes are no longer recorded, once, and OK
  // otherwise. After a failure all passes are launched.
  absl::Status TakeFailure();

 private:
  absl::Status Launch(const RecordingKey& key, Operations operations);
  absl::Status Record(const RecordingKey& key, Operations operations);
  absl::Status Replay();
  absl::Status MakeRecording(Operations operations);

  RecordingDevice* device_;  // null: launches everything
  RecordingPlan plan_;
  std::unique_ptr<Recording> recording_;
  absl::Status failure_;
  int64_t replays_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_REPLAY_RECORDER_H_
