#include "chief/members/gpu_counts.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/replicas.h"

namespace lockstep::chief {
namespace {

std::string Described(int worker, int gpus) {
  return absl::StrCat("worker ", worker, " computes on ",
                      gpus == 0   ? "its CPU"
                      : gpus == 1 ? "1 GPU"
                                  : absl::StrCat(gpus, " GPUs"));
}

}  // namespace

GpuCounts::GpuCounts(const JobConfig& job)
    : must_be_equal_(HasReplicaOnEachGpu(job)) {}

absl::Status GpuCounts::Add(int worker, int gpus,
                            const std::function<bool(int worker)>& lives,
                            absl::FunctionRef<absl::Status()> join) {
  if (!must_be_equal_) return join();
  MutexLock lock(mutex_);
  for (const auto& [other, count] : counts_) {
    // A worker has one replica on its CPU as on one GPU.
    if (other == worker || std::max(1, count) == std::max(1, gpus) ||
        !lives(other)) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        Described(worker, gpus), ", but ", Described(other, count),
        ", and strategy.replicas_per_worker is absent, so that each GPU has a "
        "replica: set the field to ",
        std::max(1, std::min(gpus, count)),
        ", or CUDA_VISIBLE_DEVICES so that all workers see equally many"));
  }
  // Under the lock: of two workers that join at once, the second is compared
  // with the first.
  LOCKSTEP_RETURN_IF_ERROR(join());
  counts_[worker] = gpus;
  return absl::OkStatus();
}

absl::Status GpuCounts::Add(const TaskId& task, int gpus,
                            const MembershipTable& members,
                            absl::FunctionRef<absl::Status()> join) {
  if (task.type != TaskType::kWorker) return join();
  const auto lives = [&members](int worker) {
    return members.Get({TaskType::kWorker, worker}).state ==
           MembershipTable::State::kAlive;
  };
  return Add(task.index, gpus, lives, join);
}

}  // namespace lockstep::chief
