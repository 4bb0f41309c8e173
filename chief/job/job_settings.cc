#include "chief/job/job_settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/operators/settings_table.h"

namespace lockstep::chief {

JobSettings::JobSettings(const JobConfig& job)
    : job_(job), now_(InitialSettings(job)), wanted_(now_) {}

int JobSettings::num_workers() const {
  return now_.workers.empty() ? job_.total_num_replicas
                              : static_cast<int>(now_.workers.size());
}

int JobSettings::workers_needed() const {
  // Any worker can compute all numbers of a shared step.
  if (job_.shares_work()) return 1;
  return std::min(now_.replicas_to_aggregate, num_workers());
}

std::vector<int> JobSettings::Workers() const {
  std::vector<int> workers = now_.workers;
  for (int i = 0; now_.workers.empty() && i < job_.total_num_replicas; ++i) {
    workers.push_back(i);
  }
  return workers;
}

RunSettings JobSettings::Apply() { return std::exchange(now_, wanted_); }

std::optional<std::string> JobSettings::Adopt(
    absl::Span<const ServerReport> reports) {
  // ps task 0 decides: others may have a change that an earlier chief did not
  // complete.
  const ServerReport* from = &reports[0];
  // A mirror that has lost its state has lost the settings with it. The newest
  // settings of the other mirrors then count, although their change may not be
  // complete: an operator has asked for it.
  if (from->committed_step < 0) {
    const auto age = [](const ServerReport& report) {
      return std::pair(report.opened_epoch, report.settings.revision);
    };
    for (const ServerReport& report : reports) {
      if (report.committed_step >= 0 && age(report) > age(*from)) {
        from = &report;
      }
    }
  }
  if (from->settings.revision > 0) now_ = from->settings;
  const double scale = now_.learning_rate_scale;
  if (scale == 1) return std::nullopt;
  const double base = job_.learning_rate.base;
  return absl::StrCat(
      "learning_rate is ", base * scale, ", which is ", scale, " times the ",
      base,
      " of the job's file, as it was changed while the job ran; if the file "
      "had another rate then, `lockstep set learning_rate=RATE` sets the one "
      "that is meant");
}

std::optional<std::string> JobSettings::Restore(
    const std::map<std::string, double>& manifest) {
  const auto value = [&manifest](const char* name, double otherwise) {
    const auto found = manifest.find(name);
    return found == manifest.end() ? otherwise : found->second;
  };
  if (manifest.empty()) return std::nullopt;
  const double base = job_.learning_rate.base;
  const double scale = value("learning_rate_scale", 1);
  const double replicas =
      value("replicas_to_aggregate", now_.replicas_to_aggregate);
  // A file that says something else since the checkpoint is the newer wish. A
  // scale of the former rate would make a third one of both.
  const double former_base = value("job.learning_rate", base);
  const bool same_rate = former_base == base;
  const bool same_replicas =
      value("job.replicas_to_aggregate", job_.replicas_to_aggregate) ==
      job_.replicas_to_aggregate;
  // The job file may have changed since the checkpoint, so the number must
  // still be possible for its workers.
  const bool possible = replicas >= 1 && !job_.shares_work() &&
                        job_.total_num_replicas >= job_.replicas_to_aggregate &&
                        (replicas <= job_.total_num_replicas ||
                         job_.mode == SyncMode::kCompatible) &&
                        replicas <= kMaxReplicas;
  RunSettings restored = now_;
  restored.paused = value("paused", 0) != 0;
  if (same_rate && scale > 0) restored.learning_rate_scale = scale;
  // An elastic job computes the number from the workers that join.
  if (same_replicas && possible && !job_.elastic_workers) {
    restored.replicas_to_aggregate = static_cast<int>(replicas);
  }
  std::vector<std::string> lines;
  if (!(restored == now_)) {
    // Above 0: the settings differ from those of the job's file.
    restored.revision = 1;
    lines.push_back(
        absl::StrCat("as the job was changed before its checkpoint: ",
                     DescribeChange(job_, now_, restored)));
  }
  if (restored.paused) lines.push_back("`lockstep resume` lets it train");
  if (!same_rate && scale != 1) {
    lines.push_back(absl::StrCat(
        "learning_rate is ", base, " as in the job's file, which had ",
        former_base, " before: the change to ", former_base * scale,
        " while the job ran is over"));
  }
  now_ = restored;
  if (lines.empty()) return std::nullopt;
  return absl::StrJoin(lines, "; ");
}

std::map<std::string, double> JobSettings::ForManifest() const {
  if (now_.revision == 0) return {};
  return {{"learning_rate_scale", now_.learning_rate_scale},
          {"replicas_to_aggregate", now_.replicas_to_aggregate},
          {"paused", now_.paused ? 1 : 0},
          {"job.learning_rate", job_.learning_rate.base},
          {"job.replicas_to_aggregate", job_.replicas_to_aggregate}};
}

bool JobSettings::SumsOtherwise(absl::Span<const ServerReport> reports) const {
  if (job_.mode == SyncMode::kCompatible) return false;
  const RunSettings initial = InitialSettings(job_);
  return std::any_of(
      reports.begin(), reports.end(), [&](const ServerReport& report) {
        const bool changed = report.settings.revision > 0;
        return report.has_parts && report.takes_part &&
               !now_.SameSum(changed ? report.settings : initial);
      });
}

}  // namespace lockstep::chief
