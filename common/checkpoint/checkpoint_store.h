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
//   <directory>/.tmp-step-...   unfinished, or left by a killed process
//
// It caches nothing: any number of processes may read one directory, but at
// most one at a time, the chief, must write and prune.
//
// Threads: safe to share, under that rule.
// Errors:  messages have the path and the system's own text.
class CheckpointStore {
 public:
  // Does not access the directory; a directory that does not exist is empty
  // until Begin() creates it.
  explicit CheckpointStore(std::string directory);

  const std::string& directory() const { return directory_; }

  // Creates the directory, and a file in a directory in it, renames, syncs and
  // removes them: all operations of a checkpoint, except for its size. Removes
  // a directory that it had to create.
  //
  // Errors: the first error of the system, with its fix
  absl::Status CheckWritable() const;

  // Starts the checkpoint of `step`; see CheckpointWriter::Create() for its
  // errors.
  absl::StatusOr<std::unique_ptr<CheckpointWriter>> Begin(
      int64_t step, const CheckpointTensors& tensors) const;

  // Returns the newest complete checkpoint. A damaged one is a warning. Does
  // not hash contents: see Verify().
  //
  //   kFailedPrecondition  the newest is of a newer format version, so an older
  //                        one must not be taken for the newest
  //   and the system's errors of listing the directory
  absl::StatusOr<LatestCheckpoint> Latest() const;

  // See CheckpointReader::Open().
  absl::StatusOr<CheckpointReader> Open(int64_t step) const;

  // Opens the newest complete checkpoint.
  //
  //   kNotFound  there is none
  //   kDataLoss  all are damaged; says what is wrong with the newest
  absl::StatusOr<CheckpointReader> OpenLatest() const;

  // Compares every file with its hash, and opens the checkpoint.
  //
  //   kNotFound            no checkpoint of this step
  //   kDataLoss            damaged; names the file, the value found and wanted
  //   kFailedPrecondition  of a newer format version
  absl::Status Verify(int64_t step) const;

  // Makes the names of the checkpoints survive a loss of power.
  absl::Status SyncNames() const;

  // Keeps the newest `keep` checkpoints for which `check` returns kOk, and
  // removes all older ones, damaged ones too; if there are fewer, removes none.
  // Also removes aside directories of killed processes. A checkpoint that
  // cannot be judged (a newer format, no permission) stays. Returns the removed
  // steps. Without `check`, complete checkpoints count.
  //
  // Errors: the system's; that of an aside directory which stays comes after
  // old checkpoints were removed
  absl::StatusOr<std::vector<int64_t>> Prune(
      int64_t keep,
      const std::function<absl::Status(int64_t step)>& check = {}) const;

  // Renames the directory of `step` to `prefix`step-..., or to that with a
  // number appended: it is then no checkpoint any more, but people can inspect
  // it. Returns its new path.
  absl::StatusOr<std::string> SetAside(int64_t step,
                                       absl::string_view prefix) const;

  // Removes every unfinished checkpoint. A chief must call it before a job goes
  // back: a replaced chief that hung in a save must not complete a checkpoint
  // of lost steps.
  absl::Status RemoveUnfinished() const;

 private:
  absl::StatusOr<std::vector<int64_t>> StepsToRemove(
      int64_t keep, const std::function<absl::Status(int64_t)>& check) const;

  const std::string directory_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STORE_H_
