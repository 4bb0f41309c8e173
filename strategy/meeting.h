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

// Meeting lets the replicas of one run wait for each other: when all have come,
// one of them acts for all while the others stand still.
//
// Threads: each member in a thread of its own.
class Meeting {
 public:
  // Gets what each member has brought, by member.
  using Act = absl::FunctionRef<void(absl::Span<void* const> brought)>;

  explicit Meeting(size_t members);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // Waits until all members have come, in whose place the last one then calls
  // the `act` of member 0; returns when that has returned. `purpose` must be
  // the same for all.
  //
  //   kAborted             another member has ended with an error: it will not
  //                        come
  //   kFailedPrecondition  another member has ended, or came for another
  //                        purpose
  absl::Status Come(size_t member, const std::type_info& purpose, void* brought,
                    Act act) ABSL_LOCKS_EXCLUDED(mutex_);

  // The member has ended; all that wait for it, or will, get an error.
  void End(size_t member, const absl::Status& end) ABSL_LOCKS_EXCLUDED(mutex_);

  // OK if all members have ended so. Otherwise the error of the first member
  // whose error is its own, not one that Come() told it. All have ended.
  absl::Status Outcome() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Seat {
    bool come = false;
    const std::type_info* purpose = nullptr;
    void* brought = nullptr;
    const Act* act = nullptr;
    std::optional<absl::Status> end;
  };
  // The reason why the members that wait would wait for ever, or OK.
  absl::Status Hopeless() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPurposes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const absl::Status& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Seat> seats_ ABSL_GUARDED_BY(mutex_);
  size_t come_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status answer_ ABSL_GUARDED_BY(mutex_);  // of the last round
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_MEETING_H_
