// The part of ViewSimulation that plays the workers.

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/conformance/protocol/view_simulation.h"

namespace lockstep {

void ViewSimulation::Act(int worker) {
  switch (workers_[worker].phase) {
    case Phase::kWait:
      Wait(worker);
      break;
    case Phase::kPull:
      Pull(worker);
      break;
    case Phase::kAnnounce:
      Announce(worker);
      break;
    case Phase::kPush:
      Push(worker);
      break;
    case Phase::kWaiting:
    case Phase::kAnswers:
      break;
  }
}

void ViewSimulation::Wait(int index) {
  Worker& worker = workers_[index];
  worker.phase = Phase::kWaiting;
  worker.ticket = ++tickets_;
  const auto answers = shard_->gate()->Wait(worker.ticket, worker.pass,
                                            worker.attempt, absl::UnixEpoch());
  if (!answers.ok()) {
    Break(answers.status().ToString());
    return;
  }
  HandleGate(*answers);
}

void ViewSimulation::HandleGate(
    const std::vector<server::Gate::Answer>& answers) {
  for (const server::Gate::Answer& answer : answers) {
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].ticket != answer.ticket) continue;
      workers_[i].ticket = 0;
      TakeToken(static_cast<int>(i), answer);
    }
  }
}

void ViewSimulation::TakeToken(int index, const server::Gate::Answer& answer) {
  Worker& worker = workers_[index];
  switch (answer.outcome) {
    case server::Gate::Outcome::kToken:
      for (Held& held : worker.memory) {
        if (held.attempt == 0) continue;
        const bool committed =
            held.step == answer.step && held.attempt == answer.attempt;
        held.attempt = 0;
        if (!committed) held.step = -1;
      }
      worker.pass.local_step = answer.step;
      worker.attempt = answer.selected_attempt;
      worker.phase = Phase::kPull;
      break;
    case server::Gate::Outcome::kRedo:
      ++redone_attempts_;
      worker.attempt = answer.attempt;
      BeginPush(index);
      break;
    default:
      worker.phase = Phase::kWait;
  }
}

// A few parts that are missing; at last, all that the worker sees is one step.
void ViewSimulation::Pull(int index) {
  Worker& worker = workers_[index];
  const int64_t step = worker.pass.local_step;
  const auto missing =
      std::find_if(worker.memory.begin(), worker.memory.end(),
                   [&](const Held& held) { return held.step != step; });
  if (missing == worker.memory.end()) {
    for (int part = 0; part < num_parts(); ++part) {
      if (worker.memory[part].values == model_.at(step)[part]) continue;
      Break(absl::StrCat("P4: worker ", index, " computes step ", step + 1,
                         " on values of another step"));
    }
    ++worker.pass.pass;
    worker.phase = Phase::kAnnounce;
    return;
  }
  const int first = static_cast<int>(missing - worker.memory.begin());
  const int count = 1 + static_cast<int>(Random(num_parts() - first));
  absl::StatusOr<server::Shard::Values> values =
      shard_->Pull(first, count, step);
  if (!values.ok()) {
    Break(values.status().ToString());
    return;
  }
  if (values->step > step) {  // too slow: the step is over
    worker.attempt = 0;
    worker.phase = Phase::kWait;
    return;
  }
  for (int i = 0; i < count; ++i) {
    const Values& expected = model_.at(values->step)[first + i];
    worker.memory[first + i] = {values->step, 0, expected};
    See(std::move(values->parts[i]), expected, "a pull");
  }
}

void ViewSimulation::Announce(int index) {
  Worker& worker = workers_[index];
  if (worker.attempt == 0) {
    const auto answer = shard_->gate()->Announce(worker.pass);
    if (!answer.ok()) {
      Break(answer.status().ToString());
      return;
    }
    if (answer->decision != server::Gate::Decision::kSelected) {
      worker.phase = Phase::kWait;
      return;
    }
    worker.attempt = answer->attempt;
  }
  BeginPush(index);
}

void ViewSimulation::BeginPush(int index) {
  Worker& worker = workers_[index];
  worker.phase = Phase::kPush;
  worker.to_push.resize(num_parts());
  std::iota(worker.to_push.begin(), worker.to_push.end(), 0);
  std::shuffle(worker.to_push.begin(), worker.to_push.end(), random_);
}

// One part; now and then it is sent again, sooner or later.
void ViewSimulation::Push(int index) {
  Worker& worker = workers_[index];
  if (worker.to_push.empty()) {
    worker.phase = worker.unanswered > 0 ? Phase::kAnswers : Phase::kWait;
    return;
  }
  const int part = worker.to_push.back();
  if (!chaos() || !Chance(20)) worker.to_push.pop_back();
  auto bytes = std::make_shared<Values>(model_.at(0)[part].size());
  const int64_t step = worker.pass.local_step;
  for (size_t i = 0; i < bytes->size(); ++i) {
    (*bytes)[i] = Gradient(index, step, part, i);
  }
  lockstep::server::Push push;
  push.pass = worker.pass;
  push.attempt = worker.attempt;
  push.first_part = part;
  push.gradients = {{{{reinterpret_cast<const std::byte*>(bytes->data()),
                       bytes->size() * sizeof(float)}},
                     bytes}};
  push.return_values = true;
  if (step == shard_->engine().step() &&
      worker.attempt == shard_->engine().arrivals().attempt) {
    pushed_[{step, worker.attempt, part}].insert(index);
  }
  const uint64_t ticket = ++tickets_;
  pushes_[ticket] = {index, worker.pass, worker.attempt, part};
  ++worker.unanswered;
  auto answers = shard_->engine().AddPush(ticket, std::move(push));
  if (!answers.ok()) {
    Break(answers.status().ToString());
    return;
  }
  HandleShard(*std::move(answers));
}

void ViewSimulation::HandleShard(server::ShardAnswers answers) {
  if (answers.prepared.has_value()) prepared_.push_back(*answers.prepared);
  for (server::PushAnswer& answer : answers.pushes)
    HandlePush(std::move(answer));
  if (shard_->engine().WaitsFor().find("readers") == 0) ++blocked_updates_;
}

void ViewSimulation::HandlePush(server::PushAnswer answer) {
  const PushCall call = pushes_.at(answer.ticket);
  pushes_.erase(answer.ticket);
  Worker& worker = workers_[call.worker];
  const bool heard = worker.incarnation == call.pass.incarnation;
  if (heard && --worker.unanswered == 0 && worker.phase == Phase::kAnswers) {
    worker.phase = Phase::kWait;
  }
  for (server::LentBytes& lent : answer.values) {
    const int64_t step = call.pass.local_step;
    const Values expected = Updated(
        step, call.first_part, pushed_[{step, call.attempt, call.first_part}]);
    if (heard && worker.pass.local_step == step &&
        worker.attempt == call.attempt) {
      worker.memory[call.first_part] = {step + 1, call.attempt, expected};
    }
    See(std::move(lent), expected, "a push");
  }
}

}  // namespace lockstep
