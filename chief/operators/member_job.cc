#include "chief/operators/member_job.h"

#include <algorithm>

namespace lockstep::chief {

MemberJob JobOfMember(const JobConfig& job, int num_workers,
                      const TaskId& member, const RunSettings& in_effect) {
  MemberJob told{job, num_workers, member.index};
  // Workers of shared work learn from each token how many of its micro-batches
  // they push at once.
  if (in_effect.replicas_to_aggregate > 0 && !job.shares_work()) {
    told.job.replicas_to_aggregate = in_effect.replicas_to_aggregate;
  }
  const std::vector<int>& workers = in_effect.workers;
  if (workers.empty()) return told;
  told.num_workers = static_cast<int>(workers.size());
  told.job.total_num_replicas = told.num_workers;
  told.data_shard = static_cast<int>(
      std::lower_bound(workers.begin(), workers.end(), member.index) -
      workers.begin());
  if (member.type == TaskType::kWorker) told.workers = workers;
  return told;
}

}  // namespace lockstep::chief
