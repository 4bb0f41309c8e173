#ifndef LOCKSTEP_SERVER_SHARD_EPOCH_FENCE_H_
#define LOCKSTEP_SERVER_SHARD_EPOCH_FENCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/wire/epoch_bounds.h"

namespace lockstep::server {

// EpochFence decides which chief a server follows. Each chief draws an epoch,
// larger than any before, and names it in all its calls; the server obeys only
// the chief of the newest epoch.
//
//   Draw(), or a newer epoch that CheckMayFollow() admits
//     -> the caller makes the epoch outlive the process -> Follow()
//     -> CheckFollowed() admits that chief and refuses all others
//
// A chief is identified by its incarnation; 0 means that it is not known.
//
// Threads: not thread-safe.
// Errors:  name the ps task of the constructor.
class EpochFence {
 public:
  explicit EpochFence(int task_index) : task_index_(task_index) {}

  uint64_t epoch() const { return epoch_; }

  // Returns an epoch newer than `newer_than` for a chief: the current one if
  // this chief has drawn it already, because the answer was lost or the request
  // was delayed; else a new one, which the caller must pass to Follow().
  // `state` is the path of the state file, for the message.
  //
  //   kInvalidArgument     no server has answered `newer_than`: it is too far
  //                        ahead of this server's epoch
  //   kFailedPrecondition  nothing can follow the current epoch
  //   kAborted             a chief that started later has drawn one;
  //                        NewestIncarnationOf() returns its incarnation for
  //                        the status
  absl::StatusOr<uint64_t> Draw(uint64_t newer_than, uint64_t chief,
                                absl::string_view state) const;

  // Checks that a chief may take the server over, or is followed already.
  //
  //   kInvalidArgument  an epoch too far ahead, as in Draw()
  //   and the errors of CheckFollowed() for epochs that are not newer
  absl::Status CheckMayFollow(uint64_t epoch, uint64_t chief) const;

  // Checks that this is the chief that the server follows.
  //
  //   kUnavailable  a newer epoch, or the chief of this one is not known
  //   kAborted      an older epoch, or one of another chief
  absl::Status CheckFollowed(uint64_t epoch, uint64_t chief) const;

  // Follows the chief from now on. `epoch` must be stored already.
  void Follow(uint64_t epoch, uint64_t chief);

  // Records that an earlier process of this task has followed `epoch`: older
  // epochs are refused.
  void Find(uint64_t epoch);

  // Events that may happen once per epoch, so that a delayed call does no harm:

  // True if the state must stay although the chief of this epoch orders to
  // discard it: it was discarded and created again in this epoch, or it was
  // created in this epoch because no state was found, and has not been opened
  // (`active`).
  bool IsStateNew(bool active) const;
  void NoteDiscarded() { discarded_epoch_ = epoch_; }
  void NoteCreated() { created_epoch_ = epoch_; }
  // True if workers may be shut out: in the first call of an epoch only.
  bool BeginShutOut();

 private:
  // Checks that a server can have drawn the epoch that a chief names.
  absl::Status CheckDrawn(absl::string_view field, uint64_t epoch) const;

  const int task_index_;
  uint64_t epoch_ = 0;  // 0: none yet
  uint64_t chief_ = 0;
  uint64_t discarded_epoch_ = 0;
  uint64_t created_epoch_ = 0;
  uint64_t shut_out_epoch_ = 0;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_EPOCH_FENCE_H_
