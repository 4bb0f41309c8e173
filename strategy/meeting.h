#ifndef LOCKSTEP_STRATEGY_MEETING_H_
#define LOCKSTEP_STRATEGY_MEETING_H_

#include <cstddef>
#include <optional>
#include <typeinfo>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"

namespace lockstep::strategy {

// Meeting is a barrier for the replicas of one run: when all members have
// reached it, one thread acts for all while the others wait. It can be used any
// number of times.
//
// Threads: each member must call in a thread of its own; Outcome() may be
//          called from any thread.
class Meeting {
 public:
  // Receives the pointers `brought` of all members, by member.
  using Act = absl::FunctionRef<void(absl::Span<void* const> brought)>;

  explicit Meeting(size_t members);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // Waits until all members have called Come(). The last one then calls the
  // `act` of member 0; all calls return after that. `purpose` must be equal for
  // all members.
  //
  //   kAborted             another member has called End() with an error
  //   kFailedPrecondition  another member has called End() without one, or
  //                        passed another `purpose`
  absl::Status Come(size_t member, const std::type_info& purpose, void* brought,
                    Act act) ABSL_LOCKS_EXCLUDED(mutex_);

  // Must be called once for each member, when its function has returned `end`.
  // All current and later calls of Come() return an error.
  void End(size_t member, const absl::Status& end) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns OK if all members have ended with OK, and otherwise the error of
  // the first member whose error did not come from Come(). All members must
  // have ended.
  absl::Status Outcome() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Seat {
    bool come = false;
    const std::type_info* purpose = nullptr;
    void* brought = nullptr;
    const Act* act = nullptr;
    // The result of the last round to which the member came. Each member has
    // its own, because other members may end the next round before it wakes.
    absl::Status answer = absl::OkStatus();
    std::optional<absl::Status> end;
  };
  // An error if a member has ended, so that the others would wait for ever.
  absl::Status Hopeless() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPurposes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the round: all its calls of Come() return `answer`.
  void Release(const absl::Status& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Seat> seats_ ABSL_GUARDED_BY(mutex_);
  size_t come_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t round_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_MEETING_H_
