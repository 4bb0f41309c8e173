#ifndef LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_store.h"

namespace lockstep {

// WholeCheckpoints finds the whole checkpoints of a store: complete, and with
// the bytes that were written. It compares each file with its hash, and repeats
// that only if the file's metadata have changed. A checkpoint that cannot be
// read is damaged only once that has lasted: storage over a network fails to
// read for a while, too.
//
// Threads: not thread-safe.
// Borrows: all constructor arguments.
class WholeCheckpoints {
 public:
  // A checkpoint that a read this long after the first could not read, either,
  // is damaged.
  static constexpr absl::Duration kReadPatience = absl::Seconds(5);

  explicit WholeCheckpoints(const CheckpointStore& store,
                            const Clock& clock = Clock::Real())
      : store_(store), clock_(clock) {}

  // True if `status` means that no process can read the checkpoint; false for
  // errors of this process, such as a missing permission.
  static bool IsDamage(const absl::Status& status);

  // Compares the checkpoint's files with their hashes, unless they are known.
  //
  //   kUnavailable  it cannot be read, which may pass
  //   and the errors of CheckpointStore::Verify()
  absl::Status Check(int64_t step);

  // Records that this process has written, and therefore hashed, the
  // checkpoint. `files`: CheckpointWriter::files(), so that a file which is
  // damaged after that is read again.
  void Wrote(int64_t step, std::string files);
  // Makes Check() return `why` until the checkpoint's files change.
  void FoundDamaged(int64_t step, const absl::Status& why);
  // Makes Check() read the checkpoint again.
  void Forget(int64_t step) { known_.erase(step); }

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

  // As CheckpointStore::Prune(), but keeps `keep` whole checkpoints. Forgets
  // all checkpoints that are not there any more.
  absl::StatusOr<std::vector<int64_t>> Prune(int64_t keep);

  // Number of recorded answers, which determines the memory of this object.
  size_t num_known() const { return known_.size() + unread_since_.size(); }

 private:
  struct Known {
    std::string files;  // metadata of the files
    absl::Status status;
  };
  // Returns the metadata of a checkpoint's files, which change with the files.
  std::string FilesOf(int64_t step) const;
  // Verifies the checkpoint; an error of reading is kUnavailable or kDataLoss.
  absl::Status Read(int64_t step);

  const CheckpointStore& store_;
  const Clock& clock_;
  std::map<int64_t, Known> known_;
  // When the checkpoints that the last read could not read first failed.
  std::map<int64_t, absl::Time> unread_since_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WHOLE_CHECKPOINTS_H_
