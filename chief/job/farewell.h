#ifndef LOCKSTEP_CHIEF_JOB_FAREWELL_H_
#define LOCKSTEP_CHIEF_JOB_FAREWELL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/job/job_context.h"

namespace lockstep::chief {

// Farewell has all members learn how the job ended, and gives them time to
// leave and a launcher time to read the last status.
//
//   telling -> leaving -> lingering -> over
class Farewell {
 public:
  // How long members are given to hear how the job ended.
  static constexpr absl::Duration kLeaveGrace = absl::Seconds(10);
  // How long a launcher needs to read the last status.
  static constexpr absl::Duration kLinger = absl::Milliseconds(600);

  explicit Farewell(JobContext& context) : context_(context) {}

  // The job has ended. `why_done` is of one that ended well.
  void Begin(const absl::Status& ended, const std::string& why_done);

  // Goes on with time. `busy`: a checkpoint is still being written, which is
  // awaited before anybody is told. True once it is over.
  bool GoOn(bool busy);

  const absl::Status& ended() const { return ended_; }

 private:
  void Tell();
  bool AwaitsLeaves() const;

  JobContext& context_;
  absl::Status ended_;
  std::string why_done_;
  std::optional<absl::Time> told_;
  std::optional<absl::Time> left_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_FAREWELL_H_
