#ifndef LOCKSTEP_CHIEF_JOB_JOB_SETTINGS_H_
#define LOCKSTEP_CHIEF_JOB_JOB_SETTINGS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "chief/servers/server_report.h"
#include "common/job/job_config.h"
#include "common/plan/run_settings.h"

namespace lockstep::chief {

// JobSettings is how a job runs now and how operators want it to run. Which of
// several sources counts is decided here: the job's file, servers that go on
// from what they have, the checkpoint that a job goes on from, operators.
class JobSettings {
 public:
  explicit JobSettings(const JobConfig& job);

  // In effect, or about to be.
  const RunSettings& now() const { return now_; }
  const RunSettings& wanted() const { return wanted_; }
  bool ToChange() const { return !(wanted_ == now_); }
  int num_workers() const;
  // Workers that must be left for another step.
  int workers_needed() const;
  // The workers that take part, ascending.
  std::vector<int> Workers() const;
  // The chief changes the gradients of a step as workers come and go.
  bool tuned() const { return job_.tune_backups; }

  void Want(const RunSettings& settings) { wanted_ = settings; }
  // The settings in effect are wanted: there is no change to apply.
  void WantNothing() { wanted_ = now_; }
  // Puts the wanted settings into effect. Returns the settings before.
  RunSettings Apply();

  // A chief that has just started adopts the servers' settings.
  void Adopt(absl::Span<const ServerReport> reports);
  // The same of a checkpoint's manifest, of a job that had been changed.
  // Returns a line for the log, if there was a change.
  std::optional<std::string> Restore(
      const std::map<std::string, double>& manifest);

  // The settings as Restore() reads them; empty for a job without changes.
  std::map<std::string, double> ForManifest() const;

  // Whether sums that a server has must not count any more, since it was told
  // other settings than those in effect.
  bool SumsOtherwise(absl::Span<const ServerReport> reports) const;

 private:
  const JobConfig& job_;
  RunSettings now_;
  RunSettings wanted_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_JOB_SETTINGS_H_
