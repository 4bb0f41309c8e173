#include "server/shard_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {

void ShardHost::SetJobId(const std::string& job_id) {
  MutexLock lock(mutex_);
  job_id_ = job_id;
}

absl::Status ShardHost::CheckJob(const std::string& job_id) const {
  if (job_id_.empty()) {
    return absl::UnavailableError(
        absl::StrCat("ps ", options_.task_index,
                     " has not registered with its chief yet; retry"));
  }
  if (job_id == job_id_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "identity.job_id is \"", job_id, "\"; ps ", options_.task_index,
      " belongs to \"", job_id_, "\"; check the addresses in TF_CONFIG"));
}

absl::StatusOr<uint64_t> ShardHost::TakeEpoch(const std::string& job_id) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  if (shard_ != nullptr) shard_->Grant(0);  // it was the old chief's word
  return ++epoch_;
}

absl::Status ShardHost::CheckChief(const std::string& job_id, uint64_t epoch) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  if (epoch < epoch_ || epoch == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "epoch ", epoch, " is over; a newer chief has epoch ", epoch_));
  }
  epoch_ = epoch;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Admit(
    const std::string& job_id, const TaskId& task, uint64_t incarnation) const {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  auto expired = expired_.find(task.index);
  if (task.type == TaskType::kWorker && expired != expired_.end() &&
      incarnation <= expired->second) {
    return absl::FailedPreconditionError(
        absl::StrCat(task.ToString(), " with incarnation ", incarnation,
                     " was taken for dead; register again"));
  }
  if (shard_ == nullptr || !shard_->active()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ps ", options_.task_index,
                     " has no values yet; ask the chief for the plan first"));
  }
  return shard_;
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Create(
    const JobConfig& job, const std::vector<VariableSpec>& variables,
    const std::vector<PartSpec>& parts) {
  MutexLock lock(mutex_);
  if (shard_ != nullptr) {
    if (shard_->state().parts() == parts && !shard_->active()) return shard_;
    return absl::FailedPreconditionError(
        absl::StrCat("ps ", options_.task_index,
                     " has a shard already; restart it to start the job anew"));
  }
  ShardState::Options options;
  options.job = job;
  options.job_id = job_id_;
  options.task_index = options_.task_index;
  options.incarnation = options_.incarnation;
  options.state_dir = options_.state_dir;
  options.variables = variables;
  options.parts = parts;
  options.shared_memory = options_.shared_memory;
  options.part_returned = options_.part_returned;
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Shard> shard,
                            Shard::Create(options));
  LOCKSTEP_RETURN_IF_ERROR(shard->state().SetEpoch(epoch_));
  shard_ = std::move(shard);
  return shard_;
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::shard() const {
  MutexLock lock(mutex_);
  if (shard_ != nullptr) return shard_;
  return absl::FailedPreconditionError(absl::StrCat(
      "ps ", options_.task_index, " has no shard yet; create it first"));
}

void ShardHost::ExpireWorker(int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  uint64_t& expired = expired_[worker];
  expired = std::max(expired, incarnation);
  if (shard_ != nullptr) shard_->shared_gradients().Remove(worker, incarnation);
}

absl::Status ShardHost::RemoveState() {
  MutexLock lock(mutex_);
  return shard_ == nullptr ? absl::OkStatus() : shard_->state().Remove();
}

}  // namespace lockstep
