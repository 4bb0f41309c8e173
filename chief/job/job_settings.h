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

// JobSettings holds the settings in effect and those that operators want. It
// decides which source counts: the job's file, the state of the servers, the
// checkpoint that the job continues from, or operators.
//
// Threads: belongs to the chief's loop.
// Borrows: the job.
class JobSettings {
 public:
  explicit JobSettings(const JobConfig& job);

  // The settings in effect; while servers are brought together, those that take
  // effect with the next opening.
  const RunSettings& now() const { return now_; }
  const RunSettings& wanted() const { return wanted_; }
  // True if the wanted settings differ from those in effect.
  bool ToChange() const { return !(wanted_ == now_); }
  int num_workers() const;
  // The number of workers that another step needs.
  int workers_needed() const;
  // The workers that take part, ascending.
  std::vector<int> Workers() const;
  // True if the chief tunes the number of gradients of a step (AUTO).
  bool tuned() const { return job_.tune_backups; }

  // Records the settings that operators want.
  void Want(const RunSettings& settings) { wanted_ = settings; }
  // Drops wishes: the wanted settings are those in effect.
  void WantNothing() { wanted_ = now_; }
  // Puts the wanted settings into effect. Returns the previous ones.
  RunSettings Apply();

  // Adopts the settings that the servers report. Called in the first round of a
  // chief, whose predecessor may have changed them. Returns a line for the log
  // if the learning rate is not the file's. Servers keep only the factor
  // between the two rates, so after an edit of the file the rate differs from
  // the one that operators have set.
  std::optional<std::string> Adopt(absl::Span<const ServerReport> reports);
  // Adopts the settings in a checkpoint's manifest; no effect if it has none. A
  // setting whose value in the job's file has changed since that checkpoint is
  // taken from the file. Returns a line for the log if the settings differ from
  // the file's, or differed in the checkpoint.
  std::optional<std::string> Restore(
      const std::map<std::string, double>& manifest);

  // Returns the settings for Restore(), each with the value of the job's file
  // that it replaced; empty for a job without changes.
  std::map<std::string, double> ForManifest() const;

  // True if a server has other settings than those in effect, so that the
  // gradients that it has summed must not count.
  bool SumsOtherwise(absl::Span<const ServerReport> reports) const;

 private:
  const JobConfig& job_;
  RunSettings now_;
  RunSettings wanted_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_JOB_SETTINGS_H_
