#include "chief/summary/summary_thread.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace lockstep::chief {

SummaryThread::SummaryThread(const JobConfig& job, absl::Time started,
                             std::function<SummarySample()> sample,
                             std::function<void(const std::string&)> trouble)
    : sample_(std::move(sample)),
      trouble_(std::move(trouble)),
      files_(job.summary.directory, started, job),
      thread_(job.summary.every, [this] { WriteSample(); }) {}

void SummaryThread::WriteSample() {
  const SummarySample sample = sample_();
  // Before training there are no values, and the step is not known.
  if (sample.job.state == JobState::kStarting) return;
  const absl::Status status = files_.Append(curves_.Add(sample), absl::Now());
  // One line for a series of failures.
  if (!status.ok() && !troubled_) {
    trouble_(absl::StrCat("summary.directory: ", status.message(),
                          "; the curves lack points until it can be written"));
  }
  troubled_ = !status.ok();
}

}  // namespace lockstep::chief
