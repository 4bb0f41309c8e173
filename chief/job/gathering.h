#ifndef LOCKSTEP_CHIEF_JOB_GATHERING_H_
#define LOCKSTEP_CHIEF_JOB_GATHERING_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/job/job_context.h"

namespace lockstep::chief {

// Gathering is the wait for a job's members before its servers are open for the
// first time: all servers, and a worker that describes the model. Mirrors that
// an elastic job may not need are awaited for a lease.
//
// Threads: belongs to the chief's loop.
// Borrows: the context.
class Gathering {
 public:
  enum class Turn {
    kWaits,
    kAllThere,
    kEnded  // see result()
  };

  // The time that a chief waits for members before it looks for a checkpoint of
  // the last step: members that ended with the job do not come.
  static constexpr absl::Duration kAfterTheEnd = absl::Seconds(10);
  // The time between two such looks.
  static constexpr absl::Duration kLookEvery = absl::Seconds(2);

  explicit Gathering(JobContext& context)
      : context_(context), began_(context.now) {}

  void Begin() { began_ = context_.now; }
  absl::Time began() const { return began_; }
  // Records that a worker has described the model.
  void ModelDescribed() { has_model_ = true; }

  // Decides from the members that have registered. Must be called at each tick.
  Turn Look();
  // Orders a look for a checkpoint of the last step, if members have been
  // awaited since `since` for long enough.
  void LookForEnd(absl::Time since);

  // With kEnded: StoppedStatus(), or the reason why the job cannot begin.
  const absl::Status& result() const { return result_; }

 private:
  Turn End(const absl::Status& status) {
    result_ = status;
    return Turn::kEnded;
  }

  JobContext& context_;
  absl::Time began_;
  absl::Time said_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfinitePast();
  bool has_model_ = false;
  absl::Status result_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_GATHERING_H_
