#ifndef LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STORE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/format/manifest.h"

namespace lockstep {

// The complete checkpoints, oldest first, and one line for each that was
// passed over: its file, what is wrong with it and what to do.
struct CheckpointList {
  std::vector<Manifest> complete;
  std::vector<std::string> warnings;
};

// The newest complete checkpoint, if there is any, and one line for each newer
// one that was passed over.
struct LatestCheckpoint {
  std::optional<Manifest> manifest;
  std::vector<std::string> warnings;
};

// CheckpointStore is the directory with all checkpoints of a job:
//
//   <directory>/step-00001500/{model.safetensors,optimizer.safetensors,
//                              manifest.json}
//   <directory>/.tmp-step-...   in the making, or left by a killed process
//
// It keeps nothing in memory: any number of processes may look into one
// directory; one at a time, the chief, writes and prunes.
//
// Threads: safe to share, as far as that rule goes.
// Errors:  messages have the path and the system's own text.
class CheckpointStore {
 public:
  // Nothing is touched; a directory that does not exist is empty until
  // Begin() makes it.
  explicit CheckpointStore(std::string directory);

  const std::string& directory() const { return directory_; }

  // Makes the directory, and a file in it that it renames and removes: what a
  // checkpoint needs, but for its size.
  //
  // Errors: the first that the system reports, with what to change
  absl::Status CheckWritable() const;

  // Starts the checkpoint of `step`; see CheckpointWriter::Create() for its
  // errors.
  absl::StatusOr<std::unique_ptr<CheckpointWriter>> Begin(
      int64_t step, const CheckpointTensors& tensors) const;

  // Both fail if the directory cannot be listed; a damaged checkpoint is a
  // warning. Contents are not hashed: see Verify().
  absl::StatusOr<CheckpointList> List() const;
  //   kFailedPrecondition  the newest is of a newer format version: what an
  //                        older program would go on from is not the newest
  absl::StatusOr<LatestCheckpoint> Latest() const;

  // See CheckpointReader::Open().
  absl::StatusOr<CheckpointReader> Open(int64_t step) const;

  // The newest complete one.
  //
  //   kNotFound  there is none
  absl::StatusOr<CheckpointReader> OpenLatest() const;

  // Compares every file with its hash, and opens it.
  //
  //   kNotFound            no checkpoint of this step
  //   kDataLoss            damaged; names the file, the value found and wanted
  //   kFailedPrecondition  of a newer format version
  absl::Status Verify(int64_t step) const;

  // Keeps the newest `keep` checkpoints of which `check` returns kOk, and
  // removes what is older than they, damaged ones too; with fewer than that it
  // removes none. Also removes what killed processes left aside. A checkpoint
  // that cannot be judged (a newer format, no permission) stays. Returns the
  // steps removed. Without `check` complete ones count.
  //
  //   kInvalidArgument  keep < 1
  absl::StatusOr<std::vector<int64_t>> Prune(
      int64_t keep,
      const std::function<absl::Status(int64_t step)>& check = {}) const;

  // Renames the directory of `step` to `prefix`step-..., or that with a number
  // after it: from now on it is no checkpoint, but what a person may look at.
  // Returns its new path.
  absl::StatusOr<std::string> SetAside(int64_t step,
                                       absl::string_view prefix) const;

  // Removes every checkpoint in the making. A chief does so before a job goes
  // back: one that hung while it was saving, and has been replaced, must not
  // complete a checkpoint of steps that are lost.
  absl::Status RemoveUnfinished() const;

 private:
  absl::StatusOr<std::vector<int64_t>> StepsToRemove(
      int64_t keep, const std::function<absl::Status(int64_t)>& check) const;

  const std::string directory_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STORE_H_
