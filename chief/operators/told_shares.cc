#include "chief/operators/told_shares.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

void ToldShares::Told(const Sender& worker, const std::vector<int>& workers) {
  if (worker.task.type != TaskType::kWorker) return;
  MutexLock lock(mutex_);
  shares_[worker.task.index] = {worker.incarnation, workers};
}

absl::Status ToldShares::Check(const Sender& worker,
                               const std::vector<int>& workers_in_effect) {
  if (worker.task.type != TaskType::kWorker) return absl::OkStatus();
  MutexLock lock(mutex_);
  const auto found = shares_.find(worker.task.index);
  if (found == shares_.end() ||
      found->second.incarnation != worker.incarnation ||
      found->second.workers == workers_in_effect) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat(worker.task.ToString(), " has a share of the data among ",
                   found->second.workers.size(), " workers, but the job has ",
                   workers_in_effect.size(),
                   " now, or others; register with a new incarnation"));
}

}  // namespace lockstep::chief
