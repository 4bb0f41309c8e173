#ifndef LOCKSTEP_CHIEF_JOB_SCORE_WAIT_H_
#define LOCKSTEP_CHIEF_JOB_SCORE_WAIT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "chief/job/job_context.h"
#include "chief/members/membership_table.h"

namespace lockstep::chief {

// ScoreWait limits the wait of a job's end for the score of its last
// checkpoint. An evaluator that lives and has no trouble may take as long as it
// needs.
//
// Threads: not thread-safe.
class ScoreWait {
 public:
  // The time that the end waits for an absent evaluator, for example one that
  // is being started again, and for an evaluator whose trouble may pass.
  static constexpr absl::Duration kGone = absl::Seconds(10);
  static constexpr absl::Duration kTrouble = absl::Seconds(30);
  // The time in which an evaluator notices the last checkpoint and reports
  // that. A trouble that it reports earlier may be that of the checkpoint
  // before.
  static constexpr absl::Duration kNotices = absl::Seconds(3);

  ScoreWait(int64_t step, absl::Time began)
      : step_(step),
        began_(began),
        said_(began),
        alive_at_(began),
        well_at_(began) {}

  // Must be called at each tick. Returns false if the end must not wait any
  // longer; reports the wait otherwise. `scored` is the step that was scored
  // last.
  bool GoOn(JobContext& context, int64_t scored);

  // True if the end must not wait any longer; why() has the reason then.
  bool IsOver(const MembershipTable::Member& evaluator, absl::Time now);

  const std::string& why() const { return why_; }
  // The text of the wait at the last IsOver().
  const std::string& waits_for() const { return waits_for_; }

 private:
  const int64_t step_;
  absl::Time began_;
  absl::Time said_;      // the last line of the log about the wait
  absl::Time alive_at_;  // when the evaluator was last alive
  absl::Time well_at_;   // when it was last alive without trouble
  std::string why_;
  std::string waits_for_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_SCORE_WAIT_H_
