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

// WholeCheckpoints tells which checkpoints of a store are whole: complete, and
// with the bytes that were written. It compares each file with its hash, and
// does so again only when the file system says that the file was touched.
//
// Threads: not safe to share.
// Borrows: the store.
class WholeCheckpoints {
 public:
  explicit WholeCheckpoints(const CheckpointStore& store) : store_(store) {}

  // True of a status that says that a checkpoint cannot be read by anybody;
  // others say that this process cannot, as for want of a permission.
  static bool IsDamage(const absl::Status& status);

  // Errors: those of CheckpointStore::Verify().
  absl::Status Check(int64_t step);

  // The checkpoint has been written by this process, which has hashed it.
  void Wrote(int64_t step);
  // Has Check() say so, as long as nothing touches the checkpoint.
  void FoundDamaged(int64_t step, const absl::Status& why);

  struct Damaged {
    int64_t step = 0;
    absl::Status why;
  };
  struct Newest {
    std::optional<CheckpointReader> reader;  // nothing: the store is empty
    std::vector<Damaged> damaged;            // newer ones, newest first
  };
  // Finds the newest that is whole.
  //
  //   kDataLoss            there are some, and all are damaged
  //   kFailedPrecondition  a newer one is of a newer format version
  //   and other reasons why a newer one can perhaps be read another time
  absl::StatusOr<Newest> FindNewest();

  // CheckpointStore::Prune(), which keeps `keep` that are whole.
  absl::StatusOr<std::vector<int64_t>> Prune(int64_t keep);

 private:
  struct Known {
    std::string files;  // what the file system says about them
    absl::Status status;
  };
  // Of the files of a checkpoint: changes when one of them does.
  std::string FilesOf(int64_t step) const;

  const CheckpointStore& store_;
  std::map<int64_t, Known> known_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_
