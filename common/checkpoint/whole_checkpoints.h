#ifndef LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_store.h"

namespace lockstep {

// WholeCheckpoints finds the whole checkpoints of a store: complete, and with
// the bytes that were written. It compares each file with its hash, and repeats
// that only if the file's metadata have changed.
//
// Threads: not safe to share.
// Borrows: the store.
class WholeCheckpoints {
 public:
  explicit WholeCheckpoints(const CheckpointStore& store) : store_(store) {}

  // True if `status` means that no process can read the checkpoint; false for
  // errors of this process, such as a missing permission.
  static bool IsDamage(const absl::Status& status);

  // Compares the checkpoint's files with their hashes, unless they are known.
  // Errors: those of CheckpointStore::Verify().
  absl::Status Check(int64_t step);

  // Records that this process has written, and therefore hashed, the
  // checkpoint. `files`: CheckpointWriter::files(), so that a file which is
  // damaged after that is read again.
  void Wrote(int64_t step, std::string files);
  // Makes Check() return `why` until the checkpoint's files change.
  void FoundDamaged(int64_t step, const absl::Status& why);

  struct Damaged {
    int64_t step = 0;
    absl::Status why;
  };
  struct Newest {
    std::optional<CheckpointReader> reader;  // nothing: the store is empty
    std::vector<Damaged> damaged;            // newer ones, newest first
  };
  // Returns the newest whole checkpoint.
  //
  //   kDataLoss            there are some, and all are damaged
  //   kFailedPrecondition  a newer one has a newer format version
  //   and other errors if a newer one may become readable later
  absl::StatusOr<Newest> FindNewest();

  // As CheckpointStore::Prune(), but keeps `keep` whole checkpoints.
  absl::StatusOr<std::vector<int64_t>> Prune(int64_t keep);

 private:
  struct Known {
    std::string files;  // metadata of the files
    absl::Status status;
  };
  // Returns the metadata of a checkpoint's files, which change with the files.
  std::string FilesOf(int64_t step) const;

  const CheckpointStore& store_;
  std::map<int64_t, Known> known_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_
