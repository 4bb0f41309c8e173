#ifndef LOCKSTEP_SERVER_STEP_STRICT_MIRROR_PARTS_H_
#define LOCKSTEP_SERVER_STEP_STRICT_MIRROR_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::server {

// MirrorParts distinguishes the parts that a mirror sums from those whose means
// come from other mirrors.
//
// Threads: immutable.
class MirrorParts {
 public:
  // By part: true if another server sums it. Empty if there are no mirrors.
  explicit MirrorParts(std::vector<bool> copied) : copied_(std::move(copied)) {}

  bool mirrored() const { return !copied_.empty(); }
  bool copied(size_t part) const { return mirrored() && copied_[part]; }

  // Checks that parts from `first_part` on exist and are all summed elsewhere
  // (`copied`), or all here.
  //
  //   kInvalidArgument     names the first part that is not
  //   kFailedPrecondition  the job is not mirrored
  absl::Status Check(int first_part, int num_parts, bool copied) const;

  // Checks that the gradients of the parts of a push must be summed here. OK if
  // there are no mirrors.
  //
  //   kInvalidArgument     a part does not exist
  //   kFailedPrecondition  another server sums a part: the worker has a plan
  //                        from before the mirrors of an elastic job changed,
  //                        and must register again for the new one
  absl::Status CheckPush(int first_part, size_t num_parts) const;

 private:
  absl::Status CheckRange(int first_part, int64_t num_parts) const;

  const std::vector<bool> copied_;
};

// Identifies an exchange of means: an attempt of the step after `step`.
struct StepAttempt {
  int64_t step = 0;
  int64_t attempt = 0;
};

// Returns the error of a commit of `asked` on a server at `now` that has
// updated `updated` of its parts, e.g. "3 of 12".
absl::Status CommitRefused(const StepAttempt& asked, const StepAttempt& now,
                           const std::string& updated);

// True if `asked` is the current attempt of a server that is at `now`; false if
// that attempt is over.
//
//   kUnavailable  it has not begun there
absl::StatusOr<bool> IsAtHand(const StepAttempt& asked, const StepAttempt& now);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_MIRROR_PARTS_H_
