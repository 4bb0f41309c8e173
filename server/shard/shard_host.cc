#include "server/shard/shard_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/wire/status_detail.h"

namespace lockstep {

void ShardHost::SetJobId(const std::string& job_id) {
  MutexLock lock(mutex_);
  job_id_ = job_id;
  if (shard_ != nullptr) return;
  const absl::StatusOr<StepRecord> left =
      StateFile::Peek(options_.state_dir, FileHeader());
  if (left.ok()) epoch_ = std::max(epoch_, left->epoch);
}

void ShardHost::Close(const absl::Status& why) {
  MutexLock lock(mutex_);
  closed_ = why;
}

StateHeader ShardHost::FileHeader() const {
  StateHeader header;
  header.job_id = job_id_;
  header.task_index = options_.task_index;
  return header;
}

absl::Status ShardHost::CheckJob(const std::string& job_id) const {
  LOCKSTEP_RETURN_IF_ERROR(closed_);
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

absl::StatusOr<uint64_t> ShardHost::TakeEpoch(const std::string& job_id,
                                              uint64_t newer_than,
                                              uint64_t chief) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  if (chief != 0 && chief == chief_ && newer_than < epoch_) return epoch_;
  if (chief != 0 && chief < chief_) {
    return WithNewestIncarnation(
        absl::AbortedError(absl::StrCat(
            "a chief that started later has taken epoch ", epoch_)),
        chief_);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckDrawn("newer_than", newer_than));
  if (epoch_ >= kLargestEpoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", options_.task_index, " has found epoch ", epoch_,
        " in its state file, which no chief has drawn and none can follow; "
        "remove ",
        StateFile::Path(options_.state_dir, FileHeader())));
  }
  LOCKSTEP_RETURN_IF_ERROR(SetEpoch(std::max(epoch_, newer_than) + 1, chief));
  if (shard_ != nullptr) shard_->Grant(0);  // it was the old chief's word
  return epoch_;
}

absl::Status ShardHost::CheckDrawn(absl::string_view field,
                                   uint64_t epoch) const {
  const bool near = epoch <= epoch_ || epoch - epoch_ <= kLongestEpochLead;
  if (near && epoch < kLargestEpoch) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", epoch, ", but ps ", options_.task_index, " is in epoch ",
      epoch_, ": no chief has drawn so large a one; send what TakeEpoch has ",
      "answered"));
}

absl::Status ShardHost::FollowChief(const std::string& job_id, uint64_t epoch,
                                    uint64_t chief) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckMayFollowLocked(job_id, epoch, chief));
  return epoch > epoch_ ? SetEpoch(epoch, chief) : absl::OkStatus();
}

absl::Status ShardHost::CheckMayFollow(const std::string& job_id,
                                       uint64_t epoch, uint64_t chief) const {
  MutexLock lock(mutex_);
  return CheckMayFollowLocked(job_id, epoch, chief);
}

absl::Status ShardHost::CheckMayFollowLocked(const std::string& job_id,
                                             uint64_t epoch,
                                             uint64_t chief) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  return epoch > epoch_ ? CheckDrawn("chief.epoch", epoch)
                        : CheckFollowed(epoch, chief);
}

absl::Status ShardHost::CheckChief(const std::string& job_id, uint64_t epoch,
                                   uint64_t chief) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  return CheckFollowed(epoch, chief);
}

absl::Status ShardHost::CheckFollowed(uint64_t epoch, uint64_t chief) const {
  if (epoch < epoch_ || epoch == 0) {
    return absl::AbortedError(absl::StrCat(
        "epoch ", epoch, " is over; a newer chief has epoch ", epoch_));
  }
  if (epoch > epoch_) {
    return absl::UnavailableError(absl::StrCat(
        "ps ", options_.task_index, " is in epoch ", epoch_, "; the chief of ",
        "epoch ", epoch, " has to create the shard first"));
  }
  if (chief_ == chief) return absl::OkStatus();
  if (chief_ == 0) {
    return absl::UnavailableError(absl::StrCat(
        "ps ", options_.task_index, " was restarted and does not know who took",
        " epoch ", epoch, "; the chief has to take a newer one"));
  }
  return absl::AbortedError(
      absl::StrCat("epoch ", epoch, " is that of another chief"));
}

absl::Status ShardHost::KeepEpoch(uint64_t epoch) {
  // Create() has the file, and writes the epoch into it at its end. Should this
  // process die before, its successor asks for a newer one in any case.
  if (creating_) return absl::OkStatus();
  if (shard_ != nullptr) return shard_->state().SetEpoch(epoch);
  const absl::Status noted =
      StateFile::NoteEpoch(options_.state_dir, FileHeader(), epoch);
  // One that cannot be read counts as none.
  const bool none = absl::IsNotFound(noted) || absl::IsDataLoss(noted);
  return none ? absl::OkStatus() : noted;
}

absl::Status ShardHost::SetEpoch(uint64_t epoch, uint64_t chief) {
  LOCKSTEP_RETURN_IF_ERROR(KeepEpoch(epoch));
  epoch_ = epoch;
  chief_ = chief;
  return absl::OkStatus();
}

absl::Status ShardHost::CheckIsChief(const TaskId& sender) const {
  if (sender == options_.chief) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "ps ", options_.task_index, " is steered by ", options_.chief.ToString(),
      " alone, as its TF_CONFIG has it, and not by ", sender.ToString()));
}

absl::Status ShardHost::CheckMeant(int server) const {
  if (server == options_.task_index) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "ps ", options_.task_index, " was taken for ps ", server,
      ": the sender's TF_CONFIG has other addresses in cluster.ps than this "
      "server's; give all tasks the same cluster"));
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Admit(
    const std::string& job_id, const TaskId& task, uint64_t incarnation) const {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  const bool worker = task.type == TaskType::kWorker;
  if (worker && fences_.IsShutOut(task.index)) {
    return absl::FailedPreconditionError(
        absl::StrCat(task.ToString(), " was away when the job went back; ",
                     "register again"));
  }
  if (worker && fences_.IsExpired(task.index, incarnation)) {
    return WithNewestIncarnation(
        absl::FailedPreconditionError(
            absl::StrCat(task.ToString(), " with incarnation ", incarnation,
                         " was taken for dead; register again")),
        fences_.Expired(task.index));
  }
  if (shard_ == nullptr || !shard_->active()) {
    return absl::UnavailableError(
        absl::StrCat("ps ", options_.task_index,
                     " has no values yet: its chief has to open it; retry"));
  }
  return shard_;
}

ShardState::Options ShardHost::StateOptions(
    const JobConfig& job, const std::vector<VariableSpec>& variables,
    const std::vector<PartSpec>& parts) const {
  ShardState::Options options;
  options.job = job;
  options.job_id = job_id_;
  options.task_index = options_.task_index;
  options.incarnation = options_.incarnation;
  options.state_dir = options_.state_dir;
  options.variables = variables;
  options.parts = parts;
  options.shared_memory = options_.shared_memory;
  options.returned_parts = returned_parts_;
  return options;
}

absl::Status ShardHost::CheckDescription(
    const JobConfig& job, const std::vector<VariableSpec>& variables,
    const std::vector<PartSpec>& parts) {
  ShardState::Options options;
  options.job = job;
  options.variables = variables;
  options.parts = parts;
  return ShardState::CheckOptions(options);
}

namespace {

// Whether the state of variables consists of the same tensors.
bool SameTensors(const JobConfig& a, const JobConfig& b) {
  if (a.variable_optimizers.size() != b.variable_optimizers.size()) {
    return false;
  }
  bool same = a.optimizer.kind == b.optimizer.kind &&
              (a.moving_average.decay > 0) == (b.moving_average.decay > 0) &&
              a.moving_average.variables == b.moving_average.variables;
  for (size_t i = 0; i < a.variable_optimizers.size(); ++i) {
    const VariableOptimizer& x = a.variable_optimizers[i];
    const VariableOptimizer& y = b.variable_optimizers[i];
    same = same && x.variables == y.variables &&
           x.optimizer.kind == y.optimizer.kind;
  }
  return same;
}

}  // namespace

absl::Status ShardHost::CheckSame(const ShardState::Options& options) const {
  const JobConfig& job = shard_->job();
  // The chief may have learnt of other workers since.
  const bool elastic = job.elastic_workers && options.job.elastic_workers;
  const bool same =
      shard_->state().parts() == options.parts &&
      variables_ == options.variables && job.mode == options.job.mode &&
      SameTensors(job, options.job) &&
      (elastic ||
       (job.replicas_to_aggregate == options.job.replicas_to_aggregate &&
        job.total_num_replicas == options.job.total_num_replicas));
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "ps ", options_.task_index,
      " has a shard of another layout, mode or number of replicas; give the "
      "chief the job file that the job was started with, or restart all"));
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::FindShard(
    const ShardState::Options& options, Keep keep,
    std::shared_ptr<Shard>& discarded) {
  const bool is_new = shard_ != nullptr && epoch_ > 0 &&
                      (discarded_epoch_ == epoch_ ||
                       (created_epoch_ == epoch_ && !shard_->active()));
  if (keep == Keep::kState || is_new) {
    if (shard_ == nullptr) return nullptr;
    LOCKSTEP_RETURN_IF_ERROR(CheckSame(options));
    if (keep == Keep::kNothing) discarded_epoch_ = epoch_;
    return shard_;
  }
  fences_.KeepIn({});
  discarded = std::exchange(shard_, nullptr);  // there may be no room for two
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Create(
    const JobConfig& job, const std::vector<VariableSpec>& variables,
    const std::vector<PartSpec>& parts, Keep keep) {
  MutexLock create_lock(create_mutex_);
  ShardState::Options options;
  std::shared_ptr<Shard> discarded;
  {
    MutexLock lock(mutex_);
    options = StateOptions(job, variables, parts);
    LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> found,
                              FindShard(options, keep, discarded));
    if (found != nullptr) return found;
    options.progress = progress_ = std::make_shared<FillProgress>();
    if (stop_creating_) progress_->Stop();
    creating_ = true;
  }
  discarded = nullptr;
  absl::StatusOr<std::unique_ptr<Shard>> shard =
      absl::NotFoundError("nothing is kept");
  if (keep == Keep::kState) shard = Shard::Open(options);
  const bool none =
      absl::IsNotFound(shard.status()) || absl::IsDataLoss(shard.status());
  if (none) shard = Shard::Create(options);
  MutexLock lock(mutex_);
  creating_ = false;
  LOCKSTEP_RETURN_IF_ERROR(shard.status());
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> installed,
                            Install(*std::move(shard), variables));
  if (none) created_epoch_ = epoch_;
  if (keep == Keep::kNothing) discarded_epoch_ = epoch_;
  return installed;
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Install(
    std::unique_ptr<Shard> shard, const std::vector<VariableSpec>& variables) {
  const uint64_t found = shard->state().record().epoch;
  if (found > epoch_) {
    epoch_ = found;
    return absl::UnavailableError(
        absl::StrCat("ps ", options_.task_index, " has found state of epoch ",
                     found, ": take a newer one, and create the shard again"));
  }
  LOCKSTEP_RETURN_IF_ERROR(shard->state().SetEpoch(epoch_));
  shard_ = std::move(shard);
  fences_.KeepIn(shard_->state().fences());
  variables_ = variables;
  return shard_;
}

std::shared_ptr<const FillProgress> ShardHost::fill_progress() const {
  MutexLock lock(mutex_);
  return progress_;
}

void ShardHost::StopCreating() {
  MutexLock lock(mutex_);
  stop_creating_ = true;
  if (progress_ != nullptr) progress_->Stop();
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::shard() const {
  MutexLock lock(mutex_);
  if (shard_ != nullptr) return shard_;
  return absl::UnavailableError(absl::StrCat(
      "ps ", options_.task_index, " has no shard yet; create it first"));
}

void ShardHost::TouchLocks() const {
  const absl::StatusOr<std::shared_ptr<Shard>> found = shard();
  if (!found.ok()) return;
  (*found)->active();
  (*found)->engine().step();
  if ((*found)->gate() != nullptr) (*found)->gate()->global_step();
  (*found)->state().record();
}

void ShardHost::ExpireWorker(int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  fences_.Expire(worker, incarnation);
  if (shard_ != nullptr) shard_->shared_gradients().Remove(worker, incarnation);
}

void ShardHost::ShutOut(const std::vector<int>& workers) {
  MutexLock lock(mutex_);
  if (shut_out_epoch_ == epoch_) return;
  shut_out_epoch_ = epoch_;
  for (int worker : workers) fences_.ShutOut(worker);
}

absl::Status ShardHost::RemoveState() {
  {
    MutexLock lock(mutex_);
    if (creating_) progress_->Stop();
  }
  MutexLock create_lock(create_mutex_);
  MutexLock lock(mutex_);
  if (job_id_.empty()) return absl::OkStatus();
  PassFaultPoint(FaultPoint::kPsRemoveBefore);
  const absl::Status removed =
      StateFile::Discard(options_.state_dir, FileHeader());
  PassFaultPoint(FaultPoint::kPsRemoveAfter);
  return removed;
}

}  // namespace lockstep
