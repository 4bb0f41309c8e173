#ifndef LOCKSTEP_COMMON_MEMBERSHIP_MEMBERSHIP_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/leave_cause.h"

namespace lockstep {

// Membership decides on a process's place in a job, from the chief's answers
// and the time: whether it is a member, must try again or with a newer
// incarnation, how long it waits for a silent chief, and how its part in the
// job ends. It makes no calls and reads no clock.
//
//   BeginRegistration -> OnRegisterAnswer ... kMember -> BeginHeartbeats
//     -> OnHeartbeat / OnFailedHeartbeat ... ended() -> BeginRegistration ...
//
// Threads: not thread-safe.
class Membership {
 public:
  struct Options {
    std::string chief;  // its address, for messages
    // The longest wait for a chief that has never answered.
    absl::Duration chief_wait = absl::InfiniteDuration();
  };

  explicit Membership(Options options);

  // A chief that is silent for longer than this is logged.
  static constexpr absl::Duration kSilent = absl::Seconds(2);
  // The time between a call that failed and its repetition.
  static constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
  // The time between two lines in the log about one wait.
  static constexpr absl::Duration kReportEvery = absl::Seconds(5);

  // True for errors that may pass: the peer did not answer. Another call may
  // succeed.
  static bool MayPass(const absl::Status& status);

  // Begins a registration at `now`; an earlier membership is over.
  // set_incarnation() must follow.
  void BeginRegistration(absl::Time now);
  // `incarnation` must be above newest_known(). May be called again until
  // kMember.
  void set_incarnation(uint64_t incarnation) { incarnation_ = incarnation; }

  enum class Next {
    kMember,
    kTryAgain,       // after a pause
    kTryWithNewer,   // after a pause, with a newer incarnation
    kWaitedTooLong,  // the chief has not let this task in
    kRefused,        // for good, with the status of the answer
  };
  // Decides the next action after `status`, the chief's answer to a
  // registration. `newest` is the newest incarnation that the answer names; 0:
  // none.
  Next OnRegisterAnswer(const absl::Status& status, uint64_t newest,
                        absl::Time now);
  // Returns the time limit of a registration: chief_wait for a chief that has
  // never answered, the job's max_wait for one that has.
  absl::Duration registration_limit() const {
    return was_member_ ? max_wait_ : options_.chief_wait;
  }

  // Begins the membership after kMember, in a job with this max_wait.
  void BeginHeartbeats(const std::string& job_id, absl::Duration max_wait,
                       absl::Time now);
  // Must be called after kMember if this process cannot take part in the job:
  // keeps the id of the job that it must leave.
  void OnJobRefused(const std::string& job_id) { job_id_ = job_id; }

  // The chief's answer to a heartbeat.
  struct Answer {
    enum class Job { kWaits, kTrains, kDone, kStopped, kFailed };
    Job job = Job::kWaits;
    std::string reason = {};  // of kStopped and kFailed
    bool hold = false;        // of kStopped: this task is not to come back
    bool state_saved = false;
  };
  // Handle an answer to a heartbeat, or its failure. Both may set ended().
  void OnHeartbeat(const Answer& answer, absl::Time now);
  void OnFailedHeartbeat(const absl::Status& status, absl::Time now);
  // Returns the time for which the chief has been silent, if it must be logged
  // at `now`.
  std::optional<absl::Duration> SilenceToReport(absl::Time now);

  enum class AfterLeave { kGone, kTryAgain };
  // Decides the next action after `status`, the chief's answer to a leave for
  // `cause`. The chief must receive the end of a worker's input: no other
  // process can report it, and the chief would wait for the worker. If the
  // lease has expired meanwhile, the worker must register again, as
  // lease_lost() says, and then finds whether its new share of the input is at
  // its end.
  AfterLeave OnLeaveAnswer(const absl::Status& status, LeaveCause cause);

  // Handles a failure of another call that does not pass. kAborted ends the
  // membership: the lease has expired.
  void OnRefusal(const absl::Status& status);

  // Handles a peer's message that it knows incarnation `newest` of this task:
  // the next registration must use a newer one. 0, and numbers that no clock
  // can have produced, have no effect.
  void OnNewerIncarnation(uint64_t newest);

  const std::string& job_id() const { return job_id_; }  // "" until kMember
  uint64_t incarnation() const { return incarnation_; }
  uint64_t newest_known() const { return newest_known_; }
  bool was_member() const { return was_member_; }  // it has been let in before

  // If ended(), end() is the reason, as ChiefClient::end() returns it.
  // lease_lost(): only the lease has expired, and the process may register
  // again.
  bool ended() const { return ended_; }
  const absl::Status& end() const { return end_; }
  bool lease_lost() const { return lease_lost_; }
  // True if a server that ends now may remove its state: the job is done, or a
  // checkpoint holds all state of the servers. Otherwise the state is the only
  // copy of the steps.
  bool state_is_spare() const { return ended_ && (end_.ok() || state_saved_); }

  // From the newest answer.
  bool job_is_training() const { return job_is_training_; }

  // The time of the newest answer to a heartbeat, or of BeginHeartbeats() if
  // that is later.
  absl::Time last_answer() const { return last_answer_; }

 private:
  void End(const absl::Status& status, bool lease_lost = false);

  const Options options_;
  std::string job_id_;
  uint64_t incarnation_ = 0;
  uint64_t newest_known_ = 0;
  bool was_member_ = false;
  absl::Duration max_wait_;
  absl::Time began_;                            // the registration
  absl::Time last_answer_;                      // to a heartbeat
  absl::Time reported_ = absl::InfinitePast();  // the silence
  bool job_is_training_ = false;
  bool state_saved_ = false;
  bool ended_ = false;
  bool lease_lost_ = false;
  absl::Status end_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_MEMBERSHIP_H_
