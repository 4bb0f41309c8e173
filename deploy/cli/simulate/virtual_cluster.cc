#include "deploy/cli/simulate/virtual_cluster.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text/count_text.h"
#include "server/step/strict/shared_gate.h"
#include "server/step/strict/strict_gate.h"

namespace lockstep::cli {
namespace {

// As in JobDriver.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// Two servers, so that the chief commits each step.
constexpr int kServers = 2;

std::unique_ptr<server::AttemptGate> MakeGate(const VirtualJob& job) {
  const int workers = static_cast<int>(job.workers.size());
  if (job.job.shares_work()) {
    return std::make_unique<server::SharedGate>(
        server::SharedGate::Options{.numbers = job.job.micro_batches_per_step,
                                    .total_num_replicas = workers});
  }
  return std::make_unique<server::StrictGate>(server::StrictGate::Options{
      .replicas_to_aggregate = job.job.replicas_to_aggregate,
      .total_num_replicas = workers});
}

}  // namespace

VirtualCluster::VirtualCluster(const VirtualJob& job)
    : job_(job),
      gate_(MakeGate(job)),
      driver_(job_.job, kServers),
      replacement_(kServers),
      tuner_(job.job.stall_timeout),
      now_(absl::UnixEpoch()),
      replicas_(job.job.replicas_to_aggregate),
      not_before_(now_),
      measured_from_(now_) {
  workers_.resize(job_.workers.size());
  for (int i = 0; i < n(); ++i) {
    indices_.push_back(i);
    // Deaths have a generator of their own, so that the n-th pass of a worker
    // takes the same time with and without them.
    const auto stream = static_cast<uint64_t>(i) * 2;
    workers_[static_cast<size_t>(i)].random.seed(job_.seed * 1000003 + stream);
    workers_[static_cast<size_t>(i)].fate.seed(job_.seed * 1000003 + stream +
                                               1);
  }
}

void VirtualCluster::After(absl::Duration delay, Kind kind, int worker,
                           int64_t version) {
  events_.push({now_ + delay, order_++, kind, worker, version});
}

absl::StatusOr<SimulatedRun> VirtualCluster::Run() {
  gate_->Activate(0);
  driver_.Open(0, replicas_, driver_.servers());
  BeginStep();
  for (int i = 0; i < n(); ++i) {
    Worker& worker = workers_[static_cast<size_t>(i)];
    // A worker waits for its first token with the local step -1, as one that
    // has just registered.
    worker.pass = {i, 1, -1, 0, 0};
    ScheduleDeath(i);
    Wait(i, 0);
  }
  After(kTick, Kind::kTick);
  After(job_.job.heartbeat_interval, Kind::kBeat);
  while (step_ < job_.warmup + job_.steps && failure_.ok()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    Handle(event);
  }
  if (!failure_.ok()) return failure_;
  run_.time = now_ - measured_from_;
  run_.steps = job_.steps;
  run_.replicas = StepGradients();
  run_.changes = static_cast<int64_t>(changes_.size());
  return run_;
}

void VirtualCluster::Handle(const Event& event) {
  const Worker& worker = workers_[static_cast<size_t>(event.worker)];
  switch (event.kind) {
    case Kind::kTick:
      return OnTick();
    case Kind::kBeat:
      return OnBeat();
    case Kind::kPrepared:
      // A later attempt has dropped the gradients of this one.
      if (event.version == attempts_) OnPrepared();
      return;
    case Kind::kIsFound:
      if (worker.member) OnFound(event.worker);
      return;
    case Kind::kIsBack:
      return OnBack(event.worker);
    case Kind::kPassEnds:
      // The pass was dropped, or its worker died.
      if (event.version == worker.version) OnPassEnd(event.worker);
      return;
    case Kind::kDies:
      return OnDeath(event.worker);
  }
}

// Workers.

void VirtualCluster::BeginPass(int index, const server::Gate::Answer& token) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const VirtualWorker& kind = job_.workers[static_cast<size_t>(index)];
  worker.pass.local_step = token.step;
  worker.pass.slot = token.slot;
  ++worker.pass.pass;
  worker.selected_attempt = token.selected_attempt;
  worker.began = now_;
  worker.computing = true;
  worker.computed = absl::ZeroDuration();
  ++worker.version;
  // Only a pass that may turn out to be useless watches for the end of its
  // step.
  if (shares() || (token.selected_attempt == 0 && n() > replicas_)) {
    const auto answers = gate_->Watch(by_ticket_.size(), worker.pass, now_);
    worker.ticket = by_ticket_.size();
    by_ticket_.push_back(index);
    if (answers.ok()) OnAnswers(*answers);
  }
  const double seconds = kind.factor * kind.law.Draw(worker.random);
  // The replicas of a shared step are its micro-batches.
  After(
      absl::Seconds(seconds * StepGradients() / replicas_) + job_.push_overhead,
      Kind::kPassEnds, index, worker.version);
}

void VirtualCluster::EndPass(Worker& worker, absl::Duration computed,
                             bool dropped) {
  worker.computing = false;
  worker.computed = computed;
  worker.measured = step_ >= job_.warmup;
  if (worker.measured) run_.computed += computed;
  Progress& progress = worker.progress;
  ++progress.passes;
  progress.pass_times.push_back({computed, dropped});
  if (progress.pass_times.size() > Progress::kPassTimes) {
    progress.pass_times.erase(progress.pass_times.begin());
  }
}

void VirtualCluster::Waste(Worker& worker) {
  // A pass that was computed before the measured steps is not wasted in them.
  if (worker.measured) run_.wasted += worker.computed;
  worker.computed = absl::ZeroDuration();
}

void VirtualCluster::DropPass(Worker& worker) {
  ++worker.version;
  EndPass(worker, now_ - worker.began, /*dropped=*/true);
  Waste(worker);
}

void VirtualCluster::OnPassEnd(int index) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  EndPass(worker, now_ - worker.began - job_.push_overhead, /*dropped=*/false);
  int64_t attempt = worker.selected_attempt;
  if (attempt == 0) {
    const auto announced = gate_->Announce(worker.pass);
    if (announced.ok() && announced->decision == Decision::kSelected) {
      attempt = announced->attempt;
    }
  }
  if (attempt > 0) {
    Arrived(index, attempt);
  } else if (shares()) {
    Waste(worker);  // another worker has made the number
  }
  Wait(index, attempt);
}

void VirtualCluster::Wait(int index, int64_t attempt) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  worker.ticket = by_ticket_.size();
  by_ticket_.push_back(index);
  const auto answers = gate_->Wait(worker.ticket, worker.pass, attempt, now_);
  if (!answers.ok()) {
    failure_ = answers.status();
    return;
  }
  OnAnswers(*answers);
}

void VirtualCluster::OnAnswers(
    const std::vector<server::Gate::Answer>& answers) {
  for (const server::Gate::Answer& answer : answers) {
    const int index = by_ticket_[answer.ticket];
    const Worker& worker = workers_[static_cast<size_t>(index)];
    // An older ticket is that of a wait or a watch that is over.
    if (worker.alive && worker.ticket == answer.ticket) OnAnswer(index, answer);
  }
}

void VirtualCluster::OnAnswer(int index, const server::Gate::Answer& answer) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  switch (answer.outcome) {
    case server::Gate::Outcome::kToken:
      if (worker.computing) {  // the end of the step, which it watched
        DropPass(worker);
        return Wait(index, 0);
      }
      if (answer.not_needed) Waste(worker);
      return BeginPass(index, answer);
    case server::Gate::Outcome::kRedo:
      Arrived(index, answer.attempt);
      return Wait(index, answer.attempt);
    case server::Gate::Outcome::kFinished:
    case server::Gate::Outcome::kCancelled:
      return;
  }
}

void VirtualCluster::ScheduleDeath(int index) {
  if (job_.deaths_per_second <= 0) return;
  Worker& worker = workers_[static_cast<size_t>(index)];
  const double uniform =
      (static_cast<double>(worker.fate() >> 11) + 0.5) * 0x1p-53;
  After(absl::Seconds(-std::log(uniform) / job_.deaths_per_second), Kind::kDies,
        index);
}

void VirtualCluster::OnDeath(int index) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  if (worker.computing) {
    worker.computed = now_ - worker.began;
    worker.measured = step_ >= job_.warmup;
    if (worker.measured) run_.computed += worker.computed;
  }
  if (shares() || arrived_.count(index) == 0) Waste(worker);
  worker.computing = worker.alive = false;
  ++worker.version;
  if (step_ >= job_.warmup) ++run_.deaths;
  // Its successor registers, or its lease ends.
  After(std::min(job_.restart, job_.job.lease), Kind::kIsFound, index);
  // Pushed after kIsFound, which therefore is handled first at the same time.
  After(job_.restart, Kind::kIsBack, index);
}

void VirtualCluster::OnFound(int index) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  worker.member = false;
  const server::Gate::Expired expired =
      gate_->Expire(index, worker.pass.incarnation);
  if (expired.attempt != attempt_) BeginAttempt(expired.attempt);
  OnAnswers(expired.answers);
}

void VirtualCluster::OnBack(int index) {
  if (workers_[static_cast<size_t>(index)].member) OnFound(index);
  Worker& worker = workers_[static_cast<size_t>(index)];
  worker.alive = worker.member = true;
  worker.pass = {index, worker.pass.incarnation + 1, -1, 0, 0};
  // A new process counts its passes from 0.
  worker.progress = {};
  ScheduleDeath(index);
  Wait(index, 0);
}

// The servers and the chief.

void VirtualCluster::BeginStep() {
  attempt_ = 1;
  ++attempts_;
  arrived_.clear();
  prepared_ = false;
  driver_.Begin(/*pauses=*/true, std::numeric_limits<int64_t>::max(), now_,
                out_);
  Carry();
}

void VirtualCluster::BeginAttempt(int64_t attempt) {
  attempt_ = attempt;
  ++attempts_;
  arrived_.clear();
  prepared_ = false;
  driver_.OnAttempt(step_, attempt, now_, out_);
  Carry();
}

void VirtualCluster::Arrived(int index, int64_t attempt) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  // The gradient is of another step or attempt, or comes after the last one
  // that counts.
  if (worker.pass.local_step != step_ || attempt != attempt_ || prepared_) {
    return;
  }
  if (shares()) {
    worker.computed = absl::ZeroDuration();  // it counts
    arrived_.insert(worker.pass.slot);
  } else {
    arrived_.insert(index);
  }
  if (static_cast<int>(arrived_.size()) < replicas_) return;
  prepared_ = true;
  // A change of settings keeps the servers busy until then.
  const absl::Time open = std::max(now_, not_before_);
  After(open - now_ + job_.overhead, Kind::kPrepared, 0, attempts_);
}

chief::TakeResult VirtualCluster::Takes(bool prepared) const {
  chief::TakeResult result;
  result.prepared = prepared;
  result.attempt = attempt_;
  // Steps of shared work have no set of workers.
  if (shares()) return result;
  const std::vector<int> arrived(arrived_.begin(), arrived_.end());
  // Where all count the gate has selected all from the start.
  result.announced_workers = replicas_ == n() ? arrived : gate_->Members();
  if (prepared) {
    result.contributors = arrived;
    return result;
  }
  result.open_parts = 1;
  for (const int worker : arrived) result.pushed[worker] = 1;
  // Servers see the end of a connection at once.
  for (int worker = 0; worker < n(); ++worker) {
    if (!workers_[static_cast<size_t>(worker)].alive) {
      result.lost_workers.push_back(worker);
    }
  }
  return result;
}

void VirtualCluster::OnPrepared() {
  for (int server = 0; server < kServers; ++server) {
    const auto heard = driver_.OnTake(
        {driver_.round(), server, step_, absl::OkStatus(), Takes(true)}, now_,
        out_);
    failure_.Update(heard.status());
  }
  Carry();
}

void VirtualCluster::Carry() {
  // Taken out first, because BeginStep() below adds the next ones.
  const chief::JobActions actions = std::exchange(out_, {});
  for (const chief::JobAction& action : actions) {
    const auto* commit = std::get_if<chief::Commit>(&action);
    // Other actions are calls of the chief, which take no time here.
    if (commit == nullptr || commit->round != driver_.round()) continue;
    const auto answers = gate_->Commit(commit->step, commit->attempt);
    if (!answers.ok()) {
      failure_ = answers.status();
      return;
    }
    // The first measured step began when its driver did.
    if (step_ == job_.warmup) measured_from_ = driver_.began();
    if (step_ >= job_.warmup) run_.gradients += StepGradients();
    step_ = commit->step;
    const auto heard = driver_.OnCommit(
        {commit->round, commit->step, commit->attempt, absl::OkStatus()}, now_,
        out_);
    failure_.Update(heard.status());
    BeginStep();
    OnAnswers(*answers);
    OnBoundary();
    return;
  }
}

void VirtualCluster::OnBoundary() {
  if (!job_.job.tune_backups) return;
  const auto change = tuner_.AtBoundary(step_, replicas_, indices_, now_);
  if (change.has_value()) Change(*change);
}

void VirtualCluster::Change(const chief::BackupTuner::Change& change) {
  changes_.push_back(absl::StrFormat(
      "%.1f s, step %d: %s instead of %d: %s",
      absl::ToDoubleSeconds(now_ - absl::UnixEpoch()), step_,
      CountText(n() - change.replicas, "backup"), n() - replicas_, change.why));
  replicas_ = change.replicas;
  not_before_ = now_ + job_.change;
  gate_->SetReplicas(replicas_, {});
  driver_.Open(step_, replicas_, driver_.servers());
  driver_.Begin(/*pauses=*/true, std::numeric_limits<int64_t>::max(), now_,
                out_);
  const std::vector<server::Gate::Answer> answers = gate_->Redo(attempt_ + 1);
  BeginAttempt(attempt_ + 1);
  OnAnswers(answers);
}

void VirtualCluster::OnTick() {
  After(kTick, Kind::kTick);
  // The step only waits for its commit.
  if (prepared_) return;
  for (int server = 0; server < kServers; ++server) {
    const auto heard = driver_.OnTake(
        {driver_.round(), server, step_, absl::OkStatus(), Takes(false)}, now_,
        out_);
    failure_.Update(heard.status());
  }
  out_.clear();  // takes, which are answered when there is something to tell
  if (now_ - driver_.began() > job_.job.max_wait) {
    failure_ = absl::DeadlineExceededError(
        absl::StrCat("step ", step_ + 1, " waits longer than max_wait (",
                     absl::FormatDuration(job_.job.max_wait), "): ",
                     job_.deaths_per_second > 0 ? "workers die too often"
                                                : "passes take too long"));
    return;
  }
  const std::optional<chief::StallWatch::Found> stalled = driver_.Stalled(now_);
  if (stalled.has_value() && MayReplace() && replacement_.MayBegin(now_)) {
    Replace(*stalled);
  }
  if (!job_.job.tune_backups) return;
  const auto change =
      tuner_.WhileWaiting(step_, replicas_, driver_.num_announced(), now_);
  if (change.has_value()) Change(*change);
}

void VirtualCluster::Replace(const chief::StallWatch::Found& stalled) {
  replacement_.Begin(stalled, step_, driver_.attempt(), "", driver_.round(),
                     now_, out_);
  const server::Gate::Replaced replaced =
      gate_->Replace(stalled.worker, step_, attempt_);
  for (int server = 0; server < kServers; ++server) {
    replacement_.OnAnswer({driver_.round(), server, replaced}, out_);
  }
  out_.clear();
  if (!replaced.by.has_value()) return;
  BeginAttempt(replaced.attempt);
  OnAnswers(replaced.answers);
}

void VirtualCluster::OnBeat() {
  After(job_.job.heartbeat_interval, Kind::kBeat);
  if (!job_.job.tune_backups) return;
  for (const int index : indices_) {
    Worker& worker = workers_[static_cast<size_t>(index)];
    const absl::Duration at_hand =
        worker.computing ? now_ - worker.began : absl::ZeroDuration();
    tuner_.Hear({index, worker.pass.incarnation, worker.member,
                 worker.progress.passes, worker.progress.pass_times, at_hand});
  }
}

}  // namespace lockstep::cli
