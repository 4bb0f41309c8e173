#ifndef LOCKSTEP_CHIEF_CHECKPOINT_JOB_CHECKPOINTS_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/servers/shard_access.h"
#include "chief/servers/state_map.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/directory_owner.h"
#include "common/checkpoint/whole_checkpoints.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// JobCheckpoints manages the directory of a job's checkpoints: it finds whole
// ones, sets others aside, and keeps other jobs from writing there. A job
// without a directory has none.
//
// Threads: not thread-safe.
class JobCheckpoints {
 public:
  // Notifies operators; called by the methods that say so.
  using Notify = std::function<void(const std::string& text)>;

  JobCheckpoints(const CheckpointConfig& config, Notify notify);

  const std::string& directory() const { return store_.directory(); }
  bool none() const { return directory().empty(); }

  // Makes the job the only one that writes to the directory.
  //
  //   kFailedPrecondition  another running job writes here
  absl::Status Own(const std::string& job_id);

  // For a job that begins with a given checkpoint, or anew: checks that the
  // checkpoint is whole, then sets aside every newer one, and notifies of each.
  // No effect for others.
  //
  //   the errors of WholeCheckpoints::Check(): nothing was set aside
  //   the errors of ListStepDirectories() and of CheckpointStore::SetAside()
  absl::Status Prepare(const Beginning& beginning);

  // The step of the newest complete checkpoint; -1: there is none. Reads no
  // contents. Errors: those of CheckpointStore::Latest().
  absl::StatusOr<int64_t> LatestStep() const;
  // When the newest complete checkpoint was written, by the clock of the chief
  // that wrote it; nullopt if that is not known, or it is not of `step`.
  std::optional<absl::Time> SavedAt(int64_t step) const;
  // Returns the step of the newest checkpoint if it is `step` or later and the
  // checkpoint is whole.
  std::optional<int64_t> WholeFrom(int64_t step);
  // Finds the newest whole checkpoint, for TakeNewest(), and returns its step;
  // -1: there is none. Sets aside damaged ones that are newer, and notifies of
  // them. Must be called once the servers obey this chief: it removes the
  // unfinished checkpoints of earlier chiefs first, because a chief that hung
  // could complete one after this call has chosen an older one. Errors: those
  // of WholeCheckpoints::FindNewest().
  absl::StatusOr<int64_t> FindNewest();
  // Returns the reader that FindNewest() has opened; nullopt without one.
  std::optional<CheckpointReader> TakeNewest();
  // Must be called when the restore of the checkpoint of `step` has failed with
  // `why`. Returns the error for the round. The next FindNewest() passes over a
  // checkpoint that was found to be damaged, and reads a checkpoint again that
  // could not be read.
  //
  //   kUnavailable  the next round may restore this checkpoint, or another one
  //   others        `why`
  absl::Status RestoreFailed(int64_t step, const absl::Status& why);
  // True if the checkpoint of `step` is whole; it then survives a loss of
  // power. Sets it aside if it is damaged.
  //
  // Errors: it cannot be judged, synced or set aside; it stays where it is
  absl::StatusOr<bool> CheckOrSetAside(int64_t step);
  absl::Status CheckWritable() const { return store_.CheckWritable(); }

  // Writes a checkpoint from a snapshot that the servers hold. Notifies if
  // the directory was removed or replaced.
  //
  //   kPermissionDenied  another running job writes here
  //   and the errors of SaveCheckpoint()
  absl::Status Save(const Manifest& manifest, const StateMap& map,
                    const JobSnapshot& snapshot,
                    const std::vector<ShardAccess*>& servers);
  // Must be called after Save(): removes old checkpoints.
  void Saved(int64_t step);

 private:
  void RemoveUnfinished();
  // Takes the directory again if it was removed or replaced, and then notifies.
  // Errors: the first of Save().
  absl::Status Hold();
  const CheckpointConfig config_;
  const Notify notify_;
  const CheckpointStore store_;
  WholeCheckpoints whole_{store_};
  std::optional<CheckpointReader> newest_;
  std::string written_;  // CheckpointWriter::files() of the last Save()
  std::optional<DirectoryOwner> owner_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_JOB_CHECKPOINTS_H_
