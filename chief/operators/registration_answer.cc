#include "chief/operators/registration_answer.h"

#include <algorithm>
#include <vector>

#include "common/job/codec/job_config_codec.h"

namespace lockstep::chief {

void FillJob(const JobConfig& job, int num_workers, const TaskId& member,
             const RunSettings& in_effect, v1::RegisterResponse& response) {
  JobConfig now = job;
  response.set_num_workers(num_workers);
  response.set_data_shard(member.index);
  // Workers of shared work learn from each token how many of its micro-batches
  // they push at once.
  if (in_effect.replicas_to_aggregate > 0 && !job.shares_work()) {
    now.replicas_to_aggregate = in_effect.replicas_to_aggregate;
  }
  const std::vector<int>& workers = in_effect.workers;
  if (!workers.empty()) {
    now.total_num_replicas = static_cast<int>(workers.size());
    response.set_num_workers(now.total_num_replicas);
    response.set_data_shard(static_cast<int>(
        std::lower_bound(workers.begin(), workers.end(), member.index) -
        workers.begin()));
    if (member.type == TaskType::kWorker) {
      response.mutable_workers()->Add(workers.begin(), workers.end());
    }
  }
  *response.mutable_job() = ToProto(now);
}

}  // namespace lockstep::chief
