#ifndef LOCKSTEP_CHIEF_TRACES_TRACE_TABLE_H_
#define LOCKSTEP_CHIEF_TRACES_TRACE_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/trace/task_trace.h"

namespace lockstep::chief {

// TraceTable collects one trace of a job at a time: the tasks whose spans are
// wanted, the moment at which they copy their spans, and the spans that they
// have reported.
//
//   Begin -> Wanted, by each task -> Report -> Get, until kKept has passed
//
// Memory:  at most kMaxBytes for spans, divided among the tasks; but each task
//          may report kFewestSpans, even if that is more in all, and
//          SpanRecorder::kRareSpans besides.
// Threads: safe to share.
class TraceTable {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  static constexpr uint32_t kMostSpans = 32768;  // of one task
  static constexpr uint32_t kFewestSpans = 512;
  // Counts from the moment that the trace shows.
  static constexpr absl::Duration kKept = absl::Seconds(60);

  // The demand on a task.
  struct Wanted {
    uint64_t id = 0;
    absl::Time at;
    uint32_t max_spans = 0;
  };

  // Begins a trace: demands the spans of `tasks`, each named once, at the
  // moment `at`. Drops the previous trace. Returns the trace's id, which is
  // above 0.
  uint64_t Begin(const std::vector<std::string>& tasks, absl::Time at)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the demand on `task`; nullopt once it has reported, or if the trace
  // is too old.
  std::optional<Wanted> WantedFrom(const std::string& task, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Stores the spans of a task. A repeated report changes nothing.
  //
  //   kFailedPrecondition  the trace is too old, or another was begun, or the
  //                        trace does not include the task
  //   kInvalidArgument     more than SpanRecorder::kRareSpans spans above
  //                        those that it was asked for
  absl::Status Report(uint64_t id, TaskTrace trace, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the spans of a task, or nullopt while it has not reported.
  //
  //   kFailedPrecondition  the trace is too old, or another was begun
  //   kNotFound            the trace does not include the task
  absl::StatusOr<std::optional<TaskTrace>> Get(uint64_t id,
                                               const std::string& task,
                                               absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Drops a trace that is too old.
  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckId(uint64_t id, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  uint64_t id_ ABSL_GUARDED_BY(mutex_) = 0;  // of the newest trace
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time at_ ABSL_GUARDED_BY(mutex_);
  uint32_t max_spans_ ABSL_GUARDED_BY(mutex_) = 0;
  // By task that is asked.
  std::map<std::string, std::optional<TaskTrace>> traces_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TRACES_TRACE_TABLE_H_
