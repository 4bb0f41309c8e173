#include "chief/chief.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/cluster_fit.h"

namespace lockstep {
namespace {

// Enough for a server to go on while the chief's next word is on its way.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// How long processes of a run that was killed may need to be gone.
constexpr absl::Duration kOwnerPatience = absl::Seconds(3);
// A member that has missed so many heartbeats need not live.
constexpr int kMissedHeartbeats = 4;
// Of an elastic job: so that none can be added that cannot be buried.
constexpr int kMaxWorkers = RunSettings::kMaxWorkers;

std::vector<TaskId> MembersOf(const Cluster& cluster) {
  std::vector<TaskId> tasks = cluster.Tasks(TaskType::kPs);
  for (const TaskId& task : cluster.Tasks(TaskType::kWorker)) {
    tasks.push_back(task);
  }
  // An evaluator need not be in the cluster to be welcome.
  tasks.push_back({TaskType::kEvaluator, 0});
  return tasks;
}

// The same job on the same cluster has the same id, so that a chief that was
// restarted knows its servers again.
std::string MakeJobId(const JobConfig& job, const Cluster& cluster) {
  Fingerprint fingerprint;
  fingerprint.Add(job.name).Add(job.seed).Add(job.model.kind);
  for (const TaskId& task : MembersOf(cluster)) {
    if (job.elastic_workers && task.type == TaskType::kWorker) continue;
    fingerprint.Add(task.ToKey()).Add(cluster.Address(task).value_or(""));
  }
  return absl::StrCat(job.name, "-",
                      absl::Hex(fingerprint.value(), absl::kZeroPad16));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Make(const Cluster& cluster,
                                                   JobConfig job,
                                                   uint64_t incarnation,
                                                   const Clock& clock,
                                                   Beginning beginning) {
  LOCKSTEP_RETURN_IF_ERROR(cluster.ValidateForParameterServers());
  LOCKSTEP_ASSIGN_OR_RETURN(
      job, FitToCluster(std::move(job), cluster.num_workers()));
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  const Sender self{MakeJobId(job, cluster), cluster.chief(), incarnation};
  std::unique_ptr<Chief> chief(new Chief(cluster, std::move(job), self,
                                         std::move(servers), clock, beginning));
  const std::string& checkpoints = chief->job_.checkpoint.directory;
  if (checkpoints.empty() && beginning.step >= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--from ", beginning.step, ": the job has no checkpoint.directory"));
  }
  if (checkpoints.empty()) return chief;
  LOCKSTEP_ASSIGN_OR_RETURN(
      DirectoryOwner owner,
      DirectoryOwner::Take(checkpoints, self.job_id, kOwnerPatience));
  chief->owner_.emplace(std::move(owner));
  return chief;
}

Chief::Chief(const Cluster& cluster, JobConfig job, const Sender& self,
             std::vector<std::string> servers, const Clock& clock,
             Beginning beginning)
    : job_(std::move(job)),
      self_(self),
      beginning_(beginning),
      evaluator_in_cluster_(cluster.has_evaluator()),
      has_evaluator_(cluster.has_evaluator() && job_.data.has_test_set() &&
                     !job_.checkpoint.directory.empty()),
      clock_(clock),
      members_(MembersOf(cluster), job_.lease,
               kMissedHeartbeats * job_.heartbeat_interval),
      desk_(job_),
      servers_(servers, self),
      store_(job_.checkpoint.directory),
      settings_(InitialSettings(job_)),
      retries_(servers_.size()),
      burials_(job_.elastic_workers ? kMaxWorkers : cluster.num_workers()),
      stalls_(servers_.size(), job_.replicas_to_aggregate) {
  service_ = std::make_unique<CoordinatorService>(
      CoordinatorService::Options{self_.job_id, job_, cluster.num_workers(),
                                  cluster.has_evaluator(),
                                  [this](const std::string& reason, bool hold) {
                                    RequestStop(reason, hold);
                                  }},
      members_, board_, desk_, clock_);
  board_.SetSettings(settings_);
}

Chief::~Chief() { JoinCheckpoint(); }

void Chief::RequestStop(const std::string& reason, bool hold) {
  MutexLock lock(stop_mutex_);
  // A job that is to stay stopped was perhaps only to be moved before.
  if (!stop_.has_value() || (hold && !IsHeld(*stop_))) {
    stop_ = StoppedStatus(reason, hold);
  }
}

absl::Status Chief::StopRequested() const {
  MutexLock lock(stop_mutex_);
  return stop_.value_or(absl::OkStatus());
}

absl::Status Chief::Run() {
  SetLogJob(job_.name);
  spdlog::info("job {} ({}), {} of {} gradients a step", job_.name,
               self_.job_id, job_.replicas_to_aggregate,
               job_.total_num_replicas);
  absl::Status status = RunPhases();
  desk_.Close("the job is over");
  JoinCheckpoint();
  const std::string reason(status.message());
  if (replaced_) return status;  // the members are another chief's
  ReportLosses();
  if (status.ok()) {
    board_.SetState(JobState::kDone, why_done_, clock_.Now());
    spdlog::info("done at step {}", board_.Get(clock_.Now()).global_step);
  } else if (absl::IsCancelled(status)) {
    board_.SetState(JobState::kStopped, reason, clock_.Now(), IsHeld(status));
    spdlog::warn("stopped: {}", reason);
  } else {
    board_.SetState(JobState::kFailed, reason, clock_.Now());
    spdlog::error("the job failed: {}", reason);
  }
  WaitForLeaves();
  return status;
}

void Chief::SayNothingToDo() {
  why_done_ = "it was done before";
  const int64_t step = board_.Get(clock_.Now()).global_step;
  const std::string what =
      absl::StrCat("nothing to do: ", store_.directory(), " has step ", step);
  if (step == job_.train_steps) {
    Notify(absl::StrCat(what, " of ", step));
  } else {
    Notify(absl::StrCat(what, ", and train_steps is ", job_.train_steps,
                        "; raise train_steps to train on, or begin before it "
                        "with --from STEP or --fresh"));
  }
}

absl::Status Chief::RunPhases() {
  if (evaluator_in_cluster_ && !has_evaluator_) {
    Notify(absl::StrCat("evaluator 0 has nothing to score: the job has no ",
                        store_.directory().empty() ? "checkpoint.directory"
                                                   : "test set in data",
                        "; name one, or leave the evaluator out"));
  }
  LOCKSTEP_RETURN_IF_ERROR(PrepareBeginning());
  LOCKSTEP_RETURN_IF_ERROR(WaitForMembers());
  if (!finished_before_) LOCKSTEP_RETURN_IF_ERROR(SetUp());
  if (finished_before_) {
    board_.Stepped(LatestStep().value_or(job_.train_steps), clock_.Now());
    SayNothingToDo();
    return absl::OkStatus();
  }
  if (loop_->step() >= job_.train_steps && saved_step_ == loop_->step()) {
    SayNothingToDo();
  }
  desk_.Open(settings_);
  const absl::Status trained = Train();
  desk_.Close("the job is finishing: its last checkpoint is written");
  if (!trained.ok() && !absl::IsCancelled(trained)) {
    SaveBeforeFailing(trained);
    return trained;
  }
  const absl::Status saved = SaveLastCheckpoint();
  if (replaced_) return saved;
  if (!saved.ok()) {
    return absl::Status(
        saved.code(),
        absl::StrCat("the last checkpoint could not be written: ",
                     saved.message(), "; servers keep step ", loop_->step(),
                     " in --state_dir, from where the job goes on when it is "
                     "started again"));
  }
  board_.SetStateSaved(!store_.directory().empty());
  LOCKSTEP_RETURN_IF_ERROR(trained);
  return Finish();
}

absl::Status Chief::Train() {
  LOCKSTEP_RETURN_IF_ERROR(NextStep());
  while (!(loop_->between_steps() && loop_->step() >= job_.train_steps)) {
    std::optional<Event> event =
        events_.PopFor(std::min(kTick, retries_.next() - clock_.Now()));
    if (event.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(Handle(*std::move(event)));
    }
    AskAgain();
    if (clock_.Now() - last_tick_ >= kTick) {
      LOCKSTEP_RETURN_IF_ERROR(Tick());
      if (server_away_) {
        LOCKSTEP_RETURN_IF_ERROR(Recover());
        LOCKSTEP_RETURN_IF_ERROR(NextStep());
      }
      LOCKSTEP_RETURN_IF_ERROR(Steer());
      if (InputEnded()) {
        spdlog::info("the input ended at step {}", loop_->step());
        why_done_ = "the input ended";
        return absl::OkStatus();
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Chief::Handle(Event event) {
  if (auto* take = std::get_if<TakeDone>(&event)) return OnTake(*take);
  if (auto* commit = std::get_if<CommitDone>(&event)) return OnCommit(*commit);
  OnCheckpoint(std::get<CheckpointDone>(event));
  return absl::OkStatus();
}

absl::Status Chief::NextStep() {
  if (SettingsChange() && loop_->step() < job_.train_steps) {
    LOCKSTEP_RETURN_IF_ERROR(ApplySettings(desk_.wanted()));
  }
  const int64_t step = loop_->step();
  SetLogStep(step);
  if (step > 0 && step >= granted_until_ && step < job_.train_steps) {
    MaybeStartCheckpoint();
  }
  if (step >= job_.train_steps || settings_.paused) return absl::OkStatus();
  Grant();
  step_began_ = clock_.Now();
  server_waits_.assign(servers_.size(), "its update");
  contributors_.assign(servers_.size(), {});
  announced_.clear();
  stalls_.Begin();
  const SyncLoop::Actions actions = loop_->Begin();
  const absl::Duration pause = pace_.Pause(told_until_);
  // Only a server that is alone goes on by itself meanwhile.
  if (servers_.size() == 1 && pause > absl::ZeroDuration()) {
    retries_.Postpone(0, step_began_ + pause);
  } else {
    Ask(actions);
  }
  return absl::OkStatus();
}

bool Chief::HasToPause() const {
  return !StopRequested().ok() || SettingsChange() ||
         (!checkpoint_running_ && desk_.checkpoint_wanted()) ||
         (!checkpoint_running_ && policy_->Due(loop_->step(), clock_.Now()));
}

void Chief::Grant() {
  if (job_.mode != SyncMode::kStrict || servers_.size() > 1) return;
  const int64_t step = loop_->step();
  if (step < granted_until_ && HasToPause()) return;
  granted_until_ = std::min(
      {step + pace_.Ahead(), policy_->NextDueStep(step), job_.train_steps});
}

void Chief::Ask(const SyncLoop::Actions& actions) {
  const int64_t step = loop_->step();
  const uint64_t epoch = servers_.epoch();
  for (int server : actions.takes) {
    told_until_ = granted_until_;
    servers_.server(server).TakeAndApply(
        step, granted_until_, stalls_.attempt(),
        [this, epoch, server, step](absl::Status status,
                                    const v1::TakeAndApplyResponse& response) {
          events_.Push(
              TakeDone{epoch, server, step, std::move(status), response});
        });
  }
  if (!actions.commit.has_value()) return;
  const SyncLoop::CommitAction commit = *actions.commit;
  servers_.server(0).Commit(
      commit.step, commit.attempt, contributors_,
      [this, epoch, commit](absl::Status status,
                            const v1::CommitResponse& response) {
        events_.Push(CommitDone{epoch, commit.step, commit.attempt,
                                response.redone_attempt(), std::move(status)});
      });
}

void Chief::AskAgain() {
  for (int server : retries_.TakeDue(clock_.Now())) {
    SyncLoop::Actions actions = loop_->OnTakeAgain(server, loop_->step());
    if (server == 0) actions.commit = std::exchange(commit_again_, {});
    Ask(actions);
  }
}

absl::Status Chief::OnTake(const TakeDone& done) {
  if (done.epoch != servers_.epoch() || done.step != loop_->step()) {
    return absl::OkStatus();
  }
  if (!done.status.ok()) return OnTakeFailed(done);
  retries_.Answered(done.server);
  Hear(done);
  if (done.response.committed_step() > done.step) {
    loop_->OnCommittedByServer(done.response.committed_step());
    return Stepped();
  }
  if (done.response.prepared()) {
    contributors_[done.server].assign(done.response.contributors().begin(),
                                      done.response.contributors().end());
    Ask(loop_->OnPrepared(done.server, done.step, done.response.attempt()));
    return absl::OkStatus();
  }
  Ask(loop_->OnTakeAgain(done.server, done.step));
  return absl::OkStatus();
}

absl::Status Chief::OnTakeFailed(const TakeDone& done) {
  if (absl::IsAborted(done.status)) return Replaced(done.status);
  if (!Passing(done.status)) {
    return absl::Status(
        done.status.code(),
        absl::StrCat("ps ", done.server, ": ", done.status.message()));
  }
  server_waits_[done.server] =
      absl::StrCat("an answer (", done.status.message(), ")");
  retries_.Failed(done.server, clock_.Now());
  return absl::OkStatus();
}

absl::Status Chief::OnCommit(const CommitDone& done) {
  if (done.epoch != servers_.epoch()) return absl::OkStatus();
  if (absl::IsAborted(done.status)) return Replaced(done.status);
  if (done.status.ok() && done.redone_attempt > 0) {
    retries_.Answered(0);
    BeginAnew(done);
    return absl::OkStatus();
  }
  if (done.status.ok()) {
    retries_.Answered(0);
    loop_->OnCommitted(done.step);
    committed_attempt_ = done.attempt;
    return Stepped();
  }
  if (absl::IsFailedPrecondition(done.status)) {
    retries_.Answered(0);
    spdlog::warn("step {}: {}; taking again", done.step, done.status.message());
    Ask(loop_->OnCommitRefused());
    return absl::OkStatus();
  }
  if (Passing(done.status)) {
    server_waits_[0] = absl::StrCat("its commit (", done.status.message(), ")");
    commit_again_ = SyncLoop::CommitAction{done.step, done.attempt};
    retries_.Failed(0, clock_.Now());
    return absl::OkStatus();
  }
  return absl::Status(done.status.code(),
                      absl::StrCat("ps 0: ", done.status.message()));
}

absl::Status Chief::Stepped() {
  const absl::Time now = clock_.Now();
  board_.Stepped(loop_->step(), now);
  pace_.Stepped(loop_->step(), now);
  board_.SetWaits({});
  if (loop_->step() >= granted_until_) {
    LOCKSTEP_RETURN_IF_ERROR(StopRequested());
  }
  return NextStep();
}

absl::Status Chief::Tick() {
  const absl::Time now = clock_.Now();
  // If this process was stopped, the members' silence was its own.
  if (now - std::exchange(last_tick_, now) > job_.lease / 2) {
    members_.RenewAll(now);
  }
  if (now - opened_ > job_.lease) members_.GiveUpPredecessors();
  // A stop takes effect between steps; without gradients it never gets there.
  if (absl::Status stop = StopRequested();
      !stop.ok() && (settings_.paused || now - step_began_ > job_.lease)) {
    return stop;
  }
  for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
    LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
  }
  if (settings_.paused) return StandStill();
  ReplaceStalled();
  ReportWaits();
  return CheckMaxWait();
}

bool Chief::InputEnded() const {
  const int left = num_workers() - ended_inputs_;
  return left == 0 ||
         left < std::min(settings_.replicas_to_aggregate, num_workers());
}

}  // namespace lockstep
