#ifndef LOCKSTEP_CHIEF_MEMBERS_GPU_COUNTS_H_
#define LOCKSTEP_CHIEF_MEMBERS_GPU_COUNTS_H_

#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "chief/members/membership_table.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// GpuCounts compares the numbers of GPUs of a job's workers. If a worker
// computes a replica on each of its GPUs, all workers must have equally many:
// otherwise their shares of the data and their weights in the mean are wrong.
//
// Threads: safe to share.
class GpuCounts {
 public:
  explicit GpuCounts(const JobConfig& job);

  // Calls `join`, and records that `worker` computes on `gpus` GPUs, 0 for its
  // CPU, if that returned OK. `lives` returns whether another worker is a
  // member: workers that have gone are not compared.
  //
  //   kFailedPrecondition  a worker that lives has another number; `join` is
  //                        not called
  //   and the errors of `join`; in both cases nothing is recorded
  absl::Status Add(int worker, int gpus,
                   const std::function<bool(int worker)>& lives,
                   absl::FunctionRef<absl::Status()> join)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As above, with the live members of `members`. Tasks that are not workers
  // are not compared, and only join.
  absl::Status Add(const TaskId& task, int gpus, const MembershipTable& members,
                   absl::FunctionRef<absl::Status()> join)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const bool must_be_equal_;
  Mutex mutex_;
  std::map<int, int> counts_ ABSL_GUARDED_BY(mutex_);  // by worker
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_MEMBERS_GPU_COUNTS_H_
