#ifndef LOCKSTEP_CHIEF_SUMMARY_SUMMARY_THREAD_H_
#define LOCKSTEP_CHIEF_SUMMARY_SUMMARY_THREAD_H_

#include <functional>
#include <string>

#include "chief/summary/event_files.h"
#include "chief/summary/periodic_thread.h"
#include "chief/summary/summary_curves.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// SummaryThread samples a job periodically and writes its curves, in a thread
// of its own. Its destructor writes the last points.
//
// Threads: not thread-safe.
class SummaryThread {
 public:
  // Calls `sample` every job.summary.every, and once at the end; and `trouble`
  // with one line when writes begin to fail. It keeps trying. Both functions
  // must be safe to call from any thread, and must outlive this object.
  SummaryThread(const JobConfig& job, absl::Time started,
                std::function<SummarySample()> sample,
                std::function<void(const std::string&)> trouble);

 private:
  void WriteSample();

  const std::function<SummarySample()> sample_;
  const std::function<void(const std::string&)> trouble_;

  // Only the thread uses these members.
  SummaryCurves curves_;
  EventFiles files_;
  bool troubled_ = false;

  PeriodicThread thread_;  // last: it uses the members above
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SUMMARY_SUMMARY_THREAD_H_
