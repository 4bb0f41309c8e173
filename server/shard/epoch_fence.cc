#include "server/shard/epoch_fence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/status_detail.h"

namespace lockstep::server {

absl::StatusOr<uint64_t> EpochFence::Draw(uint64_t newer_than, uint64_t chief,
                                          absl::string_view state) const {
  // A repeated call: the answer to the first one was lost.
  if (chief != 0 && chief == chief_ && newer_than < epoch_) return epoch_;
  if (chief != 0 && chief < chief_) {
    return WithNewestIncarnation(
        absl::AbortedError(absl::StrCat(
            "a chief that started later has taken epoch ", epoch_)),
        chief_);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckDrawn("newer_than", newer_than));
  if (epoch_ >= kLargestEpoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", task_index_, " has found epoch ", epoch_,
        " in its state file, which no chief has drawn and none can follow; "
        "remove ",
        state));
  }
  // All servers of the chief get one epoch: `newer_than` is the largest that
  // another server has drawn.
  return std::max(epoch_, newer_than) + 1;
}

absl::Status EpochFence::CheckDrawn(absl::string_view field,
                                    uint64_t epoch) const {
  // Two comparisons: the difference of unsigned numbers must not wrap.
  const bool near = epoch <= epoch_ || epoch - epoch_ <= kLongestEpochLead;
  if (near && epoch < kLargestEpoch) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", epoch, ", but ps ", task_index_, " is in epoch ", epoch_,
      ": no chief has drawn so large a one; send what TakeEpoch has ",
      "answered"));
}

absl::Status EpochFence::CheckMayFollow(uint64_t epoch, uint64_t chief) const {
  return epoch > epoch_ ? CheckDrawn("chief.epoch", epoch)
                        : CheckFollowed(epoch, chief);
}

absl::Status EpochFence::CheckFollowed(uint64_t epoch, uint64_t chief) const {
  // 0 is the epoch of a server that no chief has taken.
  if (epoch < epoch_ || epoch == 0) {
    return absl::AbortedError(absl::StrCat(
        "epoch ", epoch, " is over; a newer chief has epoch ", epoch_));
  }
  if (epoch > epoch_) {
    return absl::UnavailableError(absl::StrCat(
        "ps ", task_index_, " is in epoch ", epoch_, "; the chief of ",
        "epoch ", epoch, " has to create the shard first"));
  }
  if (chief_ == chief) return absl::OkStatus();
  // Servers that were restarted count from 1 again, so that two chiefs may have
  // drawn the same number, each on another server.
  if (chief_ == 0) {
    return absl::UnavailableError(absl::StrCat(
        "ps ", task_index_, " was restarted and does not know which chief took",
        " epoch ", epoch, "; the chief has to take a newer one"));
  }
  return absl::AbortedError(
      absl::StrCat("epoch ", epoch, " is that of another chief"));
}

void EpochFence::Follow(uint64_t epoch, uint64_t chief) {
  epoch_ = epoch;
  chief_ = chief;
}

void EpochFence::Find(uint64_t epoch) { epoch_ = std::max(epoch_, epoch); }

bool EpochFence::IsStateNew(bool active) const {
  if (epoch_ == 0) return false;
  return discarded_epoch_ == epoch_ || (created_epoch_ == epoch_ && !active);
}

bool EpochFence::BeginShutOut() {
  // Workers that have joined since the first call must not be shut out by its
  // repetition.
  if (shut_out_epoch_ == epoch_) return false;
  shut_out_epoch_ = epoch_;
  return true;
}

}  // namespace lockstep::server
