#ifndef LOCKSTEP_CHIEF_PAGE_RECORDER_H_
#define LOCKSTEP_CHIEF_PAGE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/events/job_reports.h"
#include "chief/page/job_record.h"
#include "chief/page/page.h"
#include "chief/page/step_times.h"
#include "chief/page/worker_paces.h"
#include "chief/summary/periodic_thread.h"
#include "chief/summary/summary_curves.h"
#include "common/base/mutex.h"
#include "common/observe/status_server.h"
#include "common/status/job_status.h"

namespace lockstep::chief {

// Recorder samples a job every second for its page, in a thread of its own. If
// the job has checkpoints, it keeps the record beside them, in kFile, for a
// chief that is started again: it writes the file every ten seconds, and at its
// end.
//
// Threads: safe to share.
class Recorder {
 public:
  static constexpr char kFile[] = "page.json";

  struct Options {
    std::string directory;  // of checkpoints; empty: the record ends with this
    std::string job;
    // Both must be safe to call from any thread, and live longer.
    std::function<SummarySample()> sample;
    std::function<JobStatus()> status;
    absl::Duration heartbeat_interval = absl::Milliseconds(500);  // the job's
  };

  explicit Recorder(Options options);

  // Must be called with each report of the job, which was made at `now`: the
  // times of steps, and the step at which the curves so far end, follow from
  // them. Takes less than a microsecond.
  void Note(const JobReport& report, absl::Time now)
      ABSL_LOCKS_EXCLUDED(times_mutex_);

  // The page, /status.json and /curves.json, all of them private. They must not
  // be served longer than this object lives.
  std::vector<StatusPage> Pages();

 private:
  void GoBack(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(times_mutex_);
  void Reach(int64_t step, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(times_mutex_);
  void Sample() ABSL_LOCKS_EXCLUDED(times_mutex_, mutex_);
  void Read() ABSL_LOCKS_EXCLUDED(mutex_);
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);
  PageContents Contents() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;

  Mutex times_mutex_;
  StepTimes times_ ABSL_GUARDED_BY(times_mutex_);
  bool paused_ ABSL_GUARDED_BY(times_mutex_) = false;
  // The step at which training has begun, or to which the job went back;
  // nullopt if the record knows it.
  std::optional<int64_t> back_to_ ABSL_GUARDED_BY(times_mutex_);

  Mutex mutex_;
  JobRecord record_ ABSL_GUARDED_BY(mutex_);
  WorkerPaces paces_ ABSL_GUARDED_BY(mutex_);
  double steps_per_second_ ABSL_GUARDED_BY(mutex_) = 0;

  absl::Time written_ = absl::InfinitePast();  // only the thread uses it
  bool troubled_ = false;                      // likewise
  PeriodicThread thread_;  // last: it uses the members above
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_RECORDER_H_
