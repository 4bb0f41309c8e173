#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_MEMBER_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_MEMBER_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "chief/operators/member_answers.h"
#include "chief/operators/member_job.h"
#include "common/job/job_config.h"
#include "common/membership/membership.h"
#include "common/plan/leave_cause.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/process.h"

namespace lockstep::simulation {

// Member is a process's membership in the job: the product's Membership decides
// what the chief's answers mean, and Member makes the calls over the simulated
// network, as ChiefClient makes them over the wire.
class Member {
 public:
  // How a membership has ended, for the process.
  enum class End {
    kJobOver,      // as Membership::end() says
    kLeaseLost,    // it may join again
    kLost,         // it must end, and is started again
    kRefused,      // it must end, and not come back
    kChiefIsGone,  // the same, since no chief has answered for max_wait
  };

  // `on_joined`: the chief has let the process in. `on_end`: the membership is
  // over.
  Member(Job& job, int process, int place, std::function<void()> on_joined,
         std::function<void(End)> on_end)
      : job_(job),
        process_(process),
        place_(place),
        on_joined_(std::move(on_joined)),
        on_end_(std::move(on_end)),
        membership_({"the chief"}) {}

  // Registers with a new incarnation, however long that takes. Once more after
  // kLeaseLost.
  void Join();
  // A server has refused this incarnation and knows a newer one.
  void OnNewerIncarnation(uint64_t newest);
  // Must be called with the answer to a call that failed for good; then
  // lease_lost() may be true.
  void OnRefusal(const absl::Status& status) { membership_.OnRefusal(status); }
  // Leaves; then calls `left`. If lease_lost() is true then, the process must
  // join again.
  void Leave(
      LeaveCause cause, std::function<void()> left = [] {});

  uint64_t incarnation() const { return membership_.incarnation(); }
  bool joined() const { return joined_ && !membership_.ended(); }
  bool lease_lost() const { return membership_.lease_lost(); }
  bool job_is_training() const { return membership_.job_is_training(); }
  bool state_is_spare() const { return membership_.state_is_spare(); }
  // How the job has ended, once it has.
  const absl::Status& end() const { return membership_.end(); }
  // As the chief told it when it joined.
  const JobConfig& job() const { return told_.job; }

 private:
  // Answers to calls of an incarnation before are of no interest.
  bool IsOf(uint64_t incarnation) const {
    return incarnation == membership_.incarnation();
  }
  void DrawIncarnation();
  void Register();
  void OnRegisterAnswer(
      const absl::StatusOr<chief::MemberAnswers::Registered>& answer);
  void Beat();
  void OnHeartbeatAnswer(const absl::StatusOr<Membership::Answer>& answer);

  Job& job_;
  const int process_;
  const int place_;
  const std::function<void()> on_joined_;
  const std::function<void(End)> on_end_;
  Membership membership_;
  bool joined_ = false;
  bool left_ = false;
  chief::MemberJob told_;
};

// The state of a process whose membership has ended, not by kLeaseLost.
Process::State AfterwardsOf(Member::End end);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_MEMBER_H_
