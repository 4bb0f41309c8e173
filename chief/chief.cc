#include "chief/chief.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "chief/placement.h"
#include "common/fingerprint.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Enough for a server to go on while the chief's next word is on its way.
constexpr int64_t kGrantedSteps = 8;
constexpr absl::Duration kTick = absl::Milliseconds(100);
// How long something may be missing before the log says so, and how often it
// says so again.
constexpr absl::Duration kReportAfter = absl::Seconds(5);
constexpr absl::Duration kReportEvery = absl::Seconds(10);
// How long members are given to hear how the job ended, and a launcher to read
// the last status.
constexpr absl::Duration kLeaveGrace = absl::Seconds(10);
constexpr absl::Duration kLinger = absl::Milliseconds(600);

// A server that lives may answer the next call.
bool Passing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

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
    fingerprint.Add(task.ToKey()).Add(cluster.Address(task).value_or(""));
  }
  return absl::StrCat(job.name, "-",
                      absl::Hex(fingerprint.value(), absl::kZeroPad16));
}

absl::Status FillReplicas(JobConfig& job, int num_workers) {
  if (job.total_num_replicas == 0) job.total_num_replicas = num_workers;
  if (job.replicas_to_aggregate == 0) {
    job.replicas_to_aggregate = job.total_num_replicas;
  }
  if (job.total_num_replicas != num_workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "total_num_replicas is ", job.total_num_replicas, "; the cluster has ",
        num_workers, " workers; make them equal, or leave the field out"));
  }
  if (job.initial_tokens == -1) job.initial_tokens = job.replicas_to_aggregate;
  if (job.stall_timeout == absl::ZeroDuration()) job.stall_timeout = job.lease;
  return ValidateJobConfig(job);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Make(const Cluster& cluster,
                                                   JobConfig job,
                                                   uint64_t incarnation,
                                                   const Clock& clock) {
  LOCKSTEP_RETURN_IF_ERROR(cluster.ValidateForParameterServers());
  LOCKSTEP_RETURN_IF_ERROR(FillReplicas(job, cluster.num_workers()));
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  const Sender self{MakeJobId(job, cluster), cluster.chief(), incarnation};
  return std::unique_ptr<Chief>(
      new Chief(cluster, std::move(job), self, std::move(servers), clock));
}

Chief::Chief(const Cluster& cluster, JobConfig job, const Sender& self,
             std::vector<std::string> servers, const Clock& clock)
    : job_(std::move(job)),
      self_(self),
      has_evaluator_(cluster.has_evaluator() && !job_.data.test_images.empty()),
      clock_(clock),
      members_(MembersOf(cluster), job_.lease),
      servers_(servers, self),
      store_(job_.checkpoint.directory),
      retries_(servers_.size()),
      burials_(cluster.num_workers()),
      stalls_(servers_.size(), job_.replicas_to_aggregate) {
  service_ = std::make_unique<CoordinatorService>(
      CoordinatorService::Options{
          self_.job_id, job_, cluster.num_workers(), cluster.has_evaluator(),
          [this](const std::string& reason) { RequestStop(reason); }},
      members_, board_, clock_);
}

Chief::~Chief() { JoinCheckpoint(); }

void Chief::RequestStop(const std::string& reason) {
  MutexLock lock(stop_mutex_);
  if (!stop_reason_.has_value()) stop_reason_ = reason;
}

absl::Status Chief::StopRequested() const {
  MutexLock lock(stop_mutex_);
  if (!stop_reason_.has_value()) return absl::OkStatus();
  return absl::CancelledError(*stop_reason_);
}

absl::Status Chief::Run() {
  spdlog::info("job {} ({}), {} of {} gradients a step", job_.name,
               self_.job_id, job_.replicas_to_aggregate,
               job_.total_num_replicas);
  absl::Status status = RunPhases();
  JoinCheckpoint();
  const std::string reason(status.message());
  if (status.ok()) {
    board_.SetState(JobState::kDone, "", clock_.Now());
    spdlog::info("done at step {}", board_.Get(clock_.Now()).global_step);
  } else if (absl::IsCancelled(status)) {
    board_.SetState(JobState::kStopped, reason, clock_.Now());
    spdlog::warn("stopped: {}", reason);
  } else {
    board_.SetState(JobState::kFailed, reason, clock_.Now());
    spdlog::error("the job failed: {}", reason);
  }
  WaitForLeaves();
  return status;
}

absl::Status Chief::RunPhases() {
  LOCKSTEP_RETURN_IF_ERROR(WaitForMembers());
  LOCKSTEP_RETURN_IF_ERROR(SetUp());
  const absl::Status trained = Train();
  if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  board_.SetState(JobState::kFinishing, "", clock_.Now());
  const absl::Status saved = SaveLastCheckpoint();
  if (!saved.ok()) {
    return absl::Status(saved.code(),
                        absl::StrCat("the last checkpoint could not be "
                                     "written: ",
                                     saved.message()));
  }
  LOCKSTEP_RETURN_IF_ERROR(trained);
  return Finish();
}

absl::Status Chief::WaitForMembers() {
  const absl::Time began = clock_.Now();
  while (true) {
    std::vector<std::string> missing;
    for (const TaskId& task : members_.NotAlive(TaskType::kPs)) {
      missing.push_back(task.ToString());
    }
    if (board_.variables().empty()) {
      missing.push_back("a worker that describes the model");
    }
    if (missing.empty()) return absl::OkStatus();
    const absl::Time now = clock_.Now();
    board_.SetWaits({{"chief", absl::StrJoin(missing, ", "), began}});
    if (now - std::max(began, last_report_) > kReportAfter) {
      last_report_ = now;
      spdlog::info("waiting for {} since {}", absl::StrJoin(missing, ", "),
                   absl::FormatDuration(now - began));
    }
    LOCKSTEP_RETURN_IF_ERROR(StopRequested());
    for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
      // A worker that cannot start on this job would not do so later either.
      if (absl::StrContains(dead.reason, kFailedPrefix)) {
        return absl::AbortedError(
            absl::StrCat(dead.task.ToString(), " ", dead.reason));
      }
      members_.Buried(dead.task, dead.incarnation);  // holds nothing yet
    }
    absl::SleepFor(kTick);
  }
}

absl::Status Chief::SetUp() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGradientType(board_.variables(), job_.gradient_wire_type));
  LOCKSTEP_ASSIGN_OR_RETURN(
      Plan plan,
      MakePlan(board_.variables(), servers_.size(), job_.max_part_bytes,
               job_.placement, job_.partitioner));
  LOCKSTEP_ASSIGN_OR_RETURN(uint64_t epoch, servers_.TakeEpoch());
  board_.SetEpoch(epoch);
  LOCKSTEP_ASSIGN_OR_RETURN(map_, servers_.Create(job_, plan));
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<CheckpointReader> checkpoint,
                            OpenLatest());
  int64_t step = 0;
  std::vector<float> scalars;
  if (checkpoint.has_value()) {
    step = checkpoint->manifest().global_step;
    LOCKSTEP_ASSIGN_OR_RETURN(scalars, servers_.Restore(*checkpoint, map_));
    saved_step_ = step;
    board_.Checkpointed(step);
    spdlog::info("resumed from the checkpoint of step {} in {}", step,
                 store_.directory());
  }
  LOCKSTEP_RETURN_IF_ERROR(servers_.Activate(step, scalars));
  spdlog::info("{} variables in {} parts on {} servers, epoch {}",
               plan.variables.size(), plan.parts.size(), servers_.size(),
               epoch);
  board_.SetWaits({});
  board_.StartTraining(step, clock_.Now());
  board_.PublishPlan(plan);
  policy_.emplace(job_.checkpoint, step, clock_.Now());
  loop_.emplace(servers_.size(), step);
  return absl::OkStatus();
}

absl::Status Chief::Train() {
  LOCKSTEP_RETURN_IF_ERROR(NextStep());
  absl::Time last_tick = clock_.Now();
  while (!(loop_->between_steps() && loop_->step() >= job_.train_steps)) {
    std::optional<Event> event =
        events_.PopFor(std::min(kTick, retries_.next() - clock_.Now()));
    if (event.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(Handle(*std::move(event)));
    }
    AskAgain();
    if (clock_.Now() - last_tick >= kTick) {
      last_tick = clock_.Now();
      LOCKSTEP_RETURN_IF_ERROR(Tick());
      if (InputEnded()) {
        spdlog::info("the input ended at step {}", loop_->step());
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
  const int64_t step = loop_->step();
  if (step > 0 && step >= granted_until_ && step < job_.train_steps &&
      policy_->Due(step, clock_.Now())) {
    if (checkpoint_running_) {
      spdlog::warn("step {}: no checkpoint, the one before is being written",
                   step);
    } else if (absl::Status status = StartCheckpoint(); !status.ok()) {
      spdlog::error("step {}: no checkpoint: {}", step, status.message());
    }
  }
  if (step >= job_.train_steps) return absl::OkStatus();
  Grant();
  step_began_ = clock_.Now();
  server_waits_.assign(servers_.size(), "its update");
  announced_.clear();
  stalls_.Begin();
  Ask(loop_->Begin());
  return absl::OkStatus();
}

bool Chief::HasToPause() const {
  return !StopRequested().ok() ||
         (!checkpoint_running_ && policy_->Due(loop_->step(), clock_.Now()));
}

void Chief::Grant() {
  if (job_.mode != SyncMode::kStrict || servers_.size() > 1) return;
  const int64_t step = loop_->step();
  if (step < granted_until_ && HasToPause()) return;
  granted_until_ = std::min(
      {step + kGrantedSteps, policy_->NextDueStep(step), job_.train_steps});
}

void Chief::Ask(const SyncLoop::Actions& actions) {
  const int64_t step = loop_->step();
  for (int server : actions.takes) {
    servers_.server(server).TakeAndApply(
        step, granted_until_, stalls_.attempt(),
        [this, server, step](absl::Status status,
                             const v1::TakeAndApplyResponse& response) {
          events_.Push(TakeDone{server, step, std::move(status), response});
        });
  }
  if (!actions.commit.has_value()) return;
  const SyncLoop::CommitAction commit = *actions.commit;
  servers_.server(0).Commit(
      commit.step, commit.attempt,
      [this, commit](absl::Status status, const v1::CommitResponse&) {
        events_.Push(
            CommitDone{commit.step, commit.attempt, std::move(status)});
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
  if (done.step != loop_->step()) return absl::OkStatus();
  if (!done.status.ok()) return OnTakeFailed(done);
  retries_.Answered(done.server);
  Hear(done);
  if (done.response.committed_step() > done.step) {
    loop_->OnCommittedByServer(done.response.committed_step());
    return Stepped();
  }
  if (done.response.prepared()) {
    Ask(loop_->OnPrepared(done.server, done.step, done.response.attempt()));
    return absl::OkStatus();
  }
  Ask(loop_->OnTakeAgain(done.server, done.step));
  return absl::OkStatus();
}

absl::Status Chief::OnTakeFailed(const TakeDone& done) {
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
    commit_again_ = SyncLoop::CommitAction{done.step, done.attempt};
    retries_.Failed(0, clock_.Now());
    return absl::OkStatus();
  }
  return absl::Status(done.status.code(),
                      absl::StrCat("ps 0: ", done.status.message()));
}

absl::Status Chief::Stepped() {
  board_.Stepped(loop_->step(), clock_.Now());
  board_.SetWaits({});
  if (loop_->step() >= granted_until_) {
    LOCKSTEP_RETURN_IF_ERROR(StopRequested());
  }
  return NextStep();
}

absl::Status Chief::Tick() {
  // A stop takes effect between steps; without gradients it never gets there.
  if (absl::Status stop = StopRequested();
      !stop.ok() && clock_.Now() - step_began_ > job_.lease) {
    return stop;
  }
  for (const MembershipTable::Dead& dead : members_.TakeDead(clock_.Now())) {
    LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
  }
  ReplaceStalled();
  ReportWaits();
  return CheckMaxWait();
}

absl::Status Chief::Bury(const MembershipTable::Dead& dead) {
  const std::string name = dead.task.ToString();
  if (dead.task.type == TaskType::kPs) {
    if (absl::StartsWith(dead.reason, "left: ")) {
      members_.Buried(dead.task, dead.incarnation);
      RequestStop(absl::StrCat(name, " ", dead.reason));
      return absl::OkStatus();
    }
    return absl::AbortedError(absl::StrCat(
        name, " is gone (", dead.reason,
        ") and its variables with it; start the job again: it resumes from "
        "the last checkpoint"));
  }
  if (dead.task.type == TaskType::kWorker) {
    const int worker = dead.task.index;
    if (burials_.Pauses(worker, clock_.Now())) return absl::OkStatus();
    absl::StatusOr<ShardControlClient::Expired> expired =
        servers_.ExpireWorker(worker, dead.incarnation, dead.reason);
    if (!expired.ok()) {
      burials_.Failed(worker, clock_.Now());
      spdlog::warn("{}: {}; trying again", name, expired.status().message());
      return absl::OkStatus();
    }
    burials_.Answered(worker);
    HearOfAttempt(expired->step, expired->attempt);
    spdlog::warn(
        "{} is gone ({}); it held {}{}{}", name, dead.reason,
        expired->held_announcement ? "an announcement" : "",
        expired->held_token ? "a token" : "",
        !expired->held_announcement && !expired->held_token ? "nothing" : "");
  } else {
    spdlog::warn("{} is gone ({})", name, dead.reason);
  }
  members_.Buried(dead.task, dead.incarnation);
  if (dead.reason == absl::StrCat("left: ", kEndOfInput)) ++ended_inputs_;
  return absl::OkStatus();
}

bool Chief::InputEnded() const {
  const int left = job_.total_num_replicas - ended_inputs_;
  return left == 0 ||
         left < std::min(job_.replicas_to_aggregate, job_.total_num_replicas);
}

std::string Chief::MissingWorkers() const {
  std::vector<std::string> missing;  // those that are not there come first
  std::vector<std::string> busy;
  for (const MembershipTable::Member& member : members_.Members()) {
    if (member.task.type != TaskType::kWorker) continue;
    const bool announced = std::find(announced_.begin(), announced_.end(),
                                     member.task.index) != announced_.end();
    if (announced && !stalls_.IsMissed(member.task.index)) continue;
    std::string text = member.task.ToString();
    if (member.state == MembershipTable::State::kMissing) {
      absl::StrAppend(&text, " (never started)");
    } else if (member.state != MembershipTable::State::kAlive) {
      absl::StrAppend(&text, " (gone)");
    } else {
      busy.push_back(absl::StrCat(text, " (", member.progress.activity, ")"));
      continue;
    }
    missing.push_back(text);
  }
  missing.insert(missing.end(), busy.begin(), busy.end());
  return absl::StrJoin(missing, ", ");
}

void Chief::ReportWaits() {
  const absl::Time now = clock_.Now();
  const absl::Duration age = now - step_began_;
  if (age < absl::Seconds(1)) return;
  std::vector<JobBoard::Wait> waits;
  std::string text;
  for (size_t i = 0; i < server_waits_.size(); ++i) {
    if (server_waits_[i].empty()) continue;
    waits.push_back({absl::StrCat("step ", loop_->step() + 1, " on ps ", i),
                     absl::StrCat(server_waits_[i], "; ", MissingWorkers()),
                     step_began_});
    if (text.empty()) text = waits.back().waits_for;
  }
  board_.SetWaits(std::move(waits));
  if (age < kReportAfter || now - last_report_ < kReportEvery) return;
  last_report_ = now;
  spdlog::warn("step {} waits since {} for {}", loop_->step() + 1,
               absl::FormatDuration(absl::Trunc(age, absl::Milliseconds(100))),
               text);
}

absl::Status Chief::CheckMaxWait() {
  if (clock_.Now() - step_began_ < job_.max_wait) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "step ", loop_->step() + 1, " waited longer than max_wait (",
      absl::FormatDuration(job_.max_wait), ") for ", MissingWorkers()));
}

void Chief::WaitForLeaves() {
  const absl::Time began = clock_.Now();
  while (clock_.Now() - began < kLeaveGrace) {
    members_.TakeDead(clock_.Now());
    bool alive = false;
    for (const MembershipTable::Member& member : members_.Members()) {
      alive = alive || member.state == MembershipTable::State::kAlive;
    }
    if (!alive) break;
    absl::SleepFor(kTick);
  }
  absl::SleepFor(kLinger);
}

}  // namespace lockstep
