#include "server/shard/shard_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/wire/status_detail.h"

namespace lockstep::server {
namespace {

// Between two looks whether the memory of a discarded shard is free. Usually it
// is at once.
constexpr absl::Duration kReleasePause = absl::Milliseconds(10);

// True for state that has its initial values, or is being restored.
bool IsUnopened(const Shard& shard) {
  return !shard.active() && shard.GetReport().committed_step < 0;
}

}  // namespace

void ShardHost::SetJobId(const std::string& job_id) {
  MutexLock lock(mutex_);
  job_id_ = job_id;
  if (shard_ != nullptr) return;
  const absl::StatusOr<StepRecord> left =
      StateFile::Peek(options_.state_dir, FileHeader());
  // Otherwise the server would follow a chief older than the state until the
  // state is opened.
  if (left.ok()) fence_.Find(left->epoch);
}

std::string ShardHost::job_id() const {
  MutexLock lock(mutex_);
  return job_id_;
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
  // A process that lost its lease registers again, and the chief at that
  // address may be of another job by now. That job must not begin with these
  // variables.
  if (shard_ != nullptr && job_id_ != shard_job_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", options_.task_index, " holds the variables of job \"",
        shard_job_, "\"; restart it, so that it can take part in \"", job_id_,
        "\""));
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
  LOCKSTEP_ASSIGN_OR_RETURN(
      const uint64_t epoch,
      fence_.Draw(newer_than, chief,
                  StateFile::Path(options_.state_dir, FileHeader())));
  // A repeated call: the epoch is in the state already.
  if (epoch == fence_.epoch()) return epoch;
  LOCKSTEP_RETURN_IF_ERROR(SetEpoch(epoch, chief));
  if (shard_ != nullptr) shard_->Grant(0);  // the old chief's grant
  return epoch;
}

absl::Status ShardHost::FollowChief(const std::string& job_id, uint64_t epoch,
                                    uint64_t chief) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  LOCKSTEP_RETURN_IF_ERROR(fence_.CheckMayFollow(epoch, chief));
  // A repeated call of the current epoch writes nothing.
  return epoch > fence_.epoch() ? SetEpoch(epoch, chief) : absl::OkStatus();
}

absl::Status ShardHost::CheckMayFollow(const std::string& job_id,
                                       uint64_t epoch, uint64_t chief) const {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  return fence_.CheckMayFollow(epoch, chief);
}

absl::Status ShardHost::CheckChief(const std::string& job_id, uint64_t epoch,
                                   uint64_t chief) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  return fence_.CheckFollowed(epoch, chief);
}

absl::Status ShardHost::KeepEpoch(uint64_t epoch) {
  // Create() has the file, and writes the epoch into it at its end. Should this
  // process die before, its successor asks for a newer one in any case.
  if (creating_) return absl::OkStatus();
  if (shard_ != nullptr) return shard_->state().SetEpoch(epoch);
  const absl::Status noted =
      StateFile::NoteEpoch(options_.state_dir, FileHeader(), epoch);
  // A state file that cannot be read counts as none.
  const bool none = absl::IsNotFound(noted) || absl::IsDataLoss(noted);
  return none ? absl::OkStatus() : noted;
}

absl::Status ShardHost::SetEpoch(uint64_t epoch, uint64_t chief) {
  // State first: after a restart the server must know every epoch that it has
  // ever answered with.
  LOCKSTEP_RETURN_IF_ERROR(KeepEpoch(epoch));
  fence_.Follow(epoch, chief);
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

absl::Status ShardHost::CheckMirrors(const JobConfig& job,
                                     const std::vector<PartSpec>& parts) const {
  if (job.elastic_workers && options_.state_dir.empty() &&
      job.strategy.kind == StrategyKind::kMultiWorkerMirrored) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", options_.task_index,
        " keeps its state in its own memory, but elastic_workers is true and "
        "strategy.kind is MULTI_WORKER_MIRRORED, whose mirrors open their "
        "state again when others come and go; give each of them a --state_dir "
        "on a memory file system, such as /dev/shm/lockstep"));
  }
  if (options_.num_servers == 0) return absl::OkStatus();
  for (const PartSpec& part : parts) {
    if (part.reducer < options_.num_servers) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "ps ", part.reducer,
        " sums a part of the job, but the TF_CONFIG of ps ",
        options_.task_index, " has only ", options_.num_servers,
        " addresses in cluster.ps; give all tasks the same cluster"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Admit(
    const std::string& job_id, const TaskId& task, uint64_t incarnation) const {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckAdmitted(job_id, task, incarnation));
  return shard_;
}

// Under the lock of ExpireWorker(): a worker that is expired meanwhile would
// otherwise keep its memory mapped here.
absl::Status ShardHost::ShareGradients(const std::string& job_id,
                                       const TaskId& worker,
                                       uint64_t incarnation,
                                       const std::shared_ptr<Shard>& shard,
                                       std::shared_ptr<const PeerMemory> memory,
                                       std::vector<uint64_t> offsets) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckAdmitted(job_id, worker, incarnation));
  if (shard != shard_) {
    return absl::UnavailableError(
        absl::StrCat("ps ", options_.task_index,
                     " has created its shard again meanwhile; retry"));
  }
  return shard_->shared_gradients().Add(worker.index, incarnation,
                                        std::move(memory), std::move(offsets));
}

absl::Status ShardHost::CheckAdmitted(const std::string& job_id,
                                      const TaskId& task,
                                      uint64_t incarnation) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job_id));
  // Only workers are fenced: other readers of values change nothing.
  const bool worker = task.type == TaskType::kWorker;
  if (worker && fences_.IsShutOut(task.index, incarnation)) {
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
  return absl::OkStatus();
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
  options.attempts = attempts_;
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

absl::StatusOr<bool> ShardHost::MayStay(
    const ShardState::Options& options) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckSameShard(*shard_, variables_, options));
  if (IsToOpenAgain(*shard_, options)) return false;
  // A round that failed while it restored a checkpoint leaves a mix: the next
  // round may restore an older one, which lacks some rows of growing tables.
  return !IsUnopened(*shard_) || fence_.IsStateNew(/*active=*/false) ||
         !shard_->state().written();
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::FindShard(
    const ShardState::Options& options, Keep keep,
    std::shared_ptr<Shard>& discarded) {
  // An order to discard state counts once per epoch: a repeated or delayed
  // order must not discard the state that was made for it.
  const bool is_new = shard_ != nullptr && fence_.IsStateNew(shard_->active());
  if (keep == Keep::kState || is_new) {
    if (shard_ == nullptr) return nullptr;
    LOCKSTEP_ASSIGN_OR_RETURN(const bool stays, MayStay(options));
    if (stays) {
      if (keep == Keep::kNothing) fence_.NoteDiscarded();
      // The chief may restore it from now on. A delayed copy of this call must
      // not take it for one that an older chief has half restored.
      if (IsUnopened(*shard_)) fence_.NoteCreated();
      return shard_;
    }
  }
  fences_.KeepIn({});  // they are mapped with the state, which goes
  discarded = std::exchange(shard_, nullptr);  // there may be no room for two
  return nullptr;
}

absl::Status ShardHost::AwaitRelease(FillProgress& progress,
                                     const LetGo& let_go) {
  const absl::Time deadline = Clock::Real().Now() + options_.longest_release;
  while (!leaving_.expired()) {
    // A call that was admitted earlier may have filed what it holds only after
    // the last `let_go`.
    let_go();
    LOCKSTEP_RETURN_IF_ERROR(progress.Advance(0));
    if (leaving_.expired()) break;
    if (Clock::Real().Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat(
          "the discarded state of ps ", options_.task_index,
          " is still in use by calls of this process, which end within "
          "seconds; retry"));
    }
    absl::SleepFor(kReleasePause);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Create(
    const JobConfig& job, const std::vector<VariableSpec>& variables,
    const std::vector<PartSpec>& parts, Keep keep, const LetGo& let_go) {
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
    // StopCreating() came first: the process is about to end, and filling the
    // memory of a large shard takes minutes.
    if (stop_creating_) progress_->Stop();
    creating_ = true;
  }
  // Without mutex_, so that other calls are served; create_mutex_ keeps a
  // second Create() out.
  if (discarded != nullptr) {
    leaving_ = discarded->state().presence();
    discarded = nullptr;  // unmapping takes long
    let_go();
  }
  const absl::Status released = AwaitRelease(*options.progress, let_go);
  absl::StatusOr<MadeShard> made = released.ok()
                                       ? MakeShard(options, keep)
                                       : absl::StatusOr<MadeShard>(released);
  MutexLock lock(mutex_);
  creating_ = false;
  LOCKSTEP_RETURN_IF_ERROR(made.status());
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> installed,
                            Install(std::move(made->shard), options));
  if (made->is_new) fence_.NoteCreated();
  if (keep == Keep::kNothing) fence_.NoteDiscarded();
  return installed;
}

absl::StatusOr<std::shared_ptr<Shard>> ShardHost::Install(
    std::unique_ptr<Shard> shard, const ShardState::Options& options) {
  // The state belongs to a newer chief than the one that had it opened, so the
  // older one must not be followed.
  const uint64_t found = shard->state().record().epoch;
  if (found > fence_.epoch()) {
    fence_.Find(found);
    return absl::UnavailableError(
        absl::StrCat("ps ", options_.task_index, " has found state of epoch ",
                     found, ": take a newer one, and create the shard again"));
  }
  LOCKSTEP_RETURN_IF_ERROR(shard->state().SetEpoch(fence_.epoch()));
  shard_ = std::move(shard);
  fences_.KeepIn(shard_->state().fences());
  variables_ = options.variables;
  shard_job_ = options.job_id;
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
  // Each getter takes one lock and releases it.
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

void ShardHost::KeepStandings(const std::vector<WorkerStanding>& workers) {
  MutexLock lock(mutex_);
  const bool shuts_out = std::any_of(
      workers.begin(), workers.end(), [](const WorkerStanding& standing) {
        return standing.shut_out_above.has_value();
      });
  const bool first = shuts_out && fence_.BeginShutOut();
  // A run that begins anew has all its data before it.
  if (first) fences_.ForgetEndedInput();
  for (const WorkerStanding& standing : workers) {
    if (standing.input_ended) fences_.EndInput(standing.worker);
    if (!first || !standing.shut_out_above.has_value()) continue;
    fences_.ShutOut(standing.worker, *standing.shut_out_above);
  }
}

std::vector<WorkerStanding> ShardHost::Standings() const {
  MutexLock lock(mutex_);
  return fences_.Standings();
}

absl::Status ShardHost::RemoveState() {
  {
    MutexLock lock(mutex_);
    // Ends a running Create(), which holds create_mutex_: its state would be
    // removed anyway.
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

}  // namespace lockstep::server
