#include "tests/conformance/simulation/chief_process.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kLeaveGrace = absl::Seconds(10);

std::vector<TaskId> MembersOf(const Job& job) {
  std::vector<TaskId> tasks;
  const int last = job.worker_place(job.options.total_num_replicas);
  for (int place = job.server_place(0); place < last; ++place) {
    tasks.push_back(job.TaskAt(place));
  }
  return tasks;
}

bool Passing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

ChiefProcess::ChiefProcess(Job& job)
    : job_(job),
      members_(MembersOf(job), job.config.lease),
      group_([this](uint64_t above) { return Incarnation((above >> 20) + 1); }),
      retries_(job.num_servers()),
      burials_(job.options.total_num_replicas),
      stalls_(job.num_servers(), job.options.replicas_to_aggregate),
      started_(job.world.Now()),
      last_tick_(started_),
      waiting_(job.world,
               number_ = job.world.Start(job.chief_place(), nullptr, nullptr)) {
  for (int server = 0; server < job.num_servers(); ++server) {
    calls_.push_back(std::make_unique<ChiefCalls>(
        job, waiting_, Incarnation(static_cast<uint64_t>(number_) + 1),
        server));
    group_.Add(*calls_.back());
  }
  job_.chief = this;
  job_.chiefs[number_] = this;
  waiting_.Start([this] { Main(); });
}

uint64_t ChiefProcess::Incarnation(uint64_t time) const {
  return (time << 20) + static_cast<uint64_t>(number_);
}

ChiefProcess::~ChiefProcess() {
  job_.world.End(number_);
  if (job_.chief == this) job_.chief = nullptr;
  job_.chiefs.erase(number_);
}

absl::Status ChiefProcess::Register(const TaskId& task, uint64_t incarnation) {
  const absl::Status status =
      members_.Register(task, incarnation, job_.world.Now());
  has_model_ |= status.ok() && task.type == TaskType::kWorker;
  return status;
}

absl::StatusOr<bool> ChiefProcess::Heartbeat(const TaskId& task,
                                             uint64_t incarnation) {
  const absl::Time now = job_.world.Now();
  LOCKSTEP_RETURN_IF_ERROR(members_.TakeOver(task, incarnation, now));
  LOCKSTEP_RETURN_IF_ERROR(members_.Heartbeat(task, incarnation, nullptr, now));
  has_model_ |= task.type == TaskType::kWorker;
  return over_ && !job_.Has(PlantedBug::kMembersAreNotTold);
}

void ChiefProcess::Leave(const TaskId& task, uint64_t incarnation) {
  members_
      .Leave(task, incarnation, LeaveCause::kDone, "done", nullptr,
             job_.world.Now())
      .IgnoreError();
}

void ChiefProcess::Main() {
  const absl::Status status = Run();
  JoinCheckpoint();
  job_.Trace([&] { return absl::StrCat("chief: ", status.ToString()); });
  if (absl::IsAborted(status)) return Exit(State::kRestartMe);  // replaced
  if (!status.ok()) {
    job_.promises.Break(absl::StrCat("the job fails: ", status.ToString()));
  }
  over_ = job_.done = true;
  WaitForLeaves();
  Exit(State::kExited);
}

absl::Status ChiefProcess::Run() {
  if (!WaitForMembers()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(Recover());
  if (!loop_.has_value()) return absl::OkStatus();
  opened_ = job_.world.Now();
  has_plan_ = training_ = true;
  LOCKSTEP_RETURN_IF_ERROR(Train());
  return SaveLastCheckpoint();
}

bool ChiefProcess::FinishedBefore(absl::Duration waited) const {
  return !loop_.has_value() && waited > kLeaveGrace &&
         LatestStep().value_or(-1) >= job_.options.steps;
}

// False: the job was done before this chief started.
bool ChiefProcess::WaitForMembers() {
  while (!members_.NotAlive(TaskType::kPs).empty() || !has_model_) {
    const absl::Time now = job_.world.Now();
    if (FinishedBefore(now - started_)) return false;
    for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
      members_.Buried(dead.task, dead.incarnation);
    }
    waiting_.Sleep(kTick);
  }
  return true;
}

absl::Status ChiefProcess::Recover() {
  const absl::Time began = job_.world.Now();
  JoinCheckpoint();
  while (true) {
    do {
      server_away_ = false;
      for (const auto& dead : members_.TakeDead(job_.world.Now())) {
        if (dead.task.type == TaskType::kWorker) continue;
        LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
      }
      server_away_ = !members_.NotAlive(TaskType::kPs).empty();
      if (server_away_ && FinishedBefore(job_.world.Now() - began)) {
        return absl::OkStatus();
      }
      if (server_away_) waiting_.Sleep(kTick);
    } while (server_away_);
    const bool first = !loop_.has_value();
    std::optional<int64_t> step;
    if (!first) step = loop_->step();
    const auto outcome =
        RecoveryRound(job_.config, group_, members_, *this, job_.world)
            .Run(job_.plan, step);
    job_.Trace([&] {
      return absl::StrCat("round of epoch ", group_.epoch(), ": ",
                          outcome.ok() ? absl::StrCat("step ", outcome->step)
                                       : outcome.status().ToString());
    });
    if (outcome.ok()) {
      retries_ = RetrySchedule(job_.num_servers());
      commit_again_.reset();
      granted_until_ = told_until_ = outcome->step;
      committed_attempt_ = 0;
      loop_.emplace(job_.num_servers(), outcome->step);
      if (outcome->plan.action != RecoveryPlan::Action::kResume || first) {
        saved_step_ = outcome->checkpoint_step;
        policy_.emplace(job_.config.checkpoint,
                        std::max(saved_step_, int64_t{0}), job_.world.Now());
      }
      return absl::OkStatus();
    }
    if (!Passing(outcome.status())) return outcome.status();
    waiting_.Sleep(kTick);
  }
}

absl::StatusOr<int64_t> ChiefProcess::LatestStep() const {
  return job_.checkpoints.empty() ? -1 : job_.checkpoints.rbegin()->first;
}

absl::StatusOr<std::optional<RecoverySource::Restored>> ChiefProcess::Restore(
    const StateMap&) {
  ++job_.unfinished_removed;
  if (job_.checkpoints.empty()) return std::nullopt;
  const auto [step, checkpoint] = *job_.checkpoints.rbegin();
  for (size_t k = 0; k < calls_.size(); ++k) {
    LOCKSTEP_RETURN_IF_ERROR(calls_[k]->WriteAll(checkpoint.servers[k]));
  }
  return Restored{step, {}};
}

void ChiefProcess::OnEpoch(uint64_t) {}

void ChiefProcess::OnStartFrom(const RecoveryPlan& plan, bool first) {
  if (!first) loop_.emplace(job_.num_servers(), plan.step);
  if (plan.action != RecoveryPlan::Action::kGoBack) return;
  job_.Trace([&] {
    return absl::StrCat("all go back to step ", plan.step, ": ", plan.reason);
  });
  if (!first) return;
  const absl::Duration wait = started_ + absl::Seconds(2) +
                              job_.config.heartbeat_interval - job_.world.Now();
  if (wait > absl::ZeroDuration()) waiting_.Sleep(wait);
}

absl::Status ChiefProcess::SaveLastCheckpoint() {
  const int64_t last_step = loop_->step();
  while (true) {
    training_ = false;
    const absl::Status saved = TrySaveLastCheckpoint();
    if (!Passing(saved)) return saved;
    LOCKSTEP_RETURN_IF_ERROR(Recover());
    if (loop_->step() >= last_step) continue;
    training_ = true;
    LOCKSTEP_RETURN_IF_ERROR(Train());
  }
}

absl::Status ChiefProcess::TrySaveLastCheckpoint() {
  LOCKSTEP_RETURN_IF_ERROR(calls_[0]->CloseTokens());
  JoinCheckpoint();
  if (job_.Has(PlantedBug::kNoLastCheckpoint)) return absl::OkStatus();
  if (saved_step_ == loop_->step()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(StartCheckpoint());
  JoinCheckpoint();
  if (saved_step_ == loop_->step()) return absl::OkStatus();
  return absl::UnavailableError("the last checkpoint could not be read");
}

absl::Status ChiefProcess::StartCheckpoint() {
  const int64_t step = loop_->step();
  JoinCheckpoint();
  LOCKSTEP_RETURN_IF_ERROR(
      group_.BeginSnapshot(step, committed_attempt_).status());
  checkpoint_running_ = true;
  saver_ = std::make_unique<Waiting>(job_.world, number_);
  saver_->Start(
      [this, step, epoch = group_.epoch(), removed = job_.unfinished_removed] {
        Job::Checkpoint checkpoint;
        for (auto& server : calls_) {
          auto parts = server->ReadAll(*saver_, epoch);
          if (!parts.ok()) break;
          checkpoint.servers.push_back(*std::move(parts));
        }
        // As SaveCheckpoint() reads once more before it commits.
        const bool still = calls_.back()->ReadAll(*saver_, epoch).ok();
        checkpoint_running_ = false;
        // As CheckpointWriter::Commit() renames what it has written.
        const bool there = removed == job_.unfinished_removed;
        if (still && there && checkpoint.servers.size() == calls_.size()) {
          job_.promises.OnCheckpoint(step, checkpoint.servers);
          job_.checkpoints[step] = std::move(checkpoint);
          saved_step_ = step;
          policy_->Saved(step, job_.world.Now());
        } else {
          policy_->Failed(job_.world.Now());
        }
        // The main fiber may wait for this; it goes on in an event of its own.
        job_.world.AfterFor(number_, absl::ZeroDuration(),
                            [this] { waiting_.Wake(); });
      });
  return absl::OkStatus();
}

void ChiefProcess::JoinCheckpoint() {
  waiting_.Until([this] { return !checkpoint_running_; });
}

void ChiefProcess::WaitForLeaves() {
  const absl::Time began = job_.world.Now();
  while (job_.world.Now() - began < kLeaveGrace) {
    for (const auto& dead : members_.TakeDead(job_.world.Now())) {
      members_.Buried(dead.task, dead.incarnation);
    }
    const bool may_join = job_.world.Now() - began <
                          job_.config.lease + job_.config.heartbeat_interval;
    bool awaited = false;
    for (const MembershipTable::Member& member : members_.Members()) {
      awaited |= member.state == MembershipTable::State::kAlive ||
                 (member.state == MembershipTable::State::kDead &&
                  member.task.type == TaskType::kPs) ||
                 (may_join && member.task.type == TaskType::kWorker &&
                  member.state != MembershipTable::State::kLeft);
    }
    if (!awaited) break;
    waiting_.Sleep(kTick);
  }
  waiting_.Sleep(absl::Milliseconds(600));
}

}  // namespace lockstep::simulation
