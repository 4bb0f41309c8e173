#include "tests/conformance/protocol/strict_simulation.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr int64_t kLongestRun = 50'000;  // events
constexpr int64_t kLongestDelay = 120;   // events

}  // namespace

StrictSimulation::Server::Server(const Options& options, int parts)
    : updater(parts),
      shard({options.replicas_to_aggregate, options.total_num_replicas},
            updater) {}

StrictSimulation::StrictSimulation(const Options& options, uint32_t seed)
    : options_(options),
      random_(seed),
      gate_({options.replicas_to_aggregate, options.total_num_replicas}),
      loop_(static_cast<int>(options.parts.size()), 0),
      workers_(options.total_num_replicas) {
  for (size_t i = 0; i < options_.parts.size(); ++i) {
    Server& server = servers_.emplace_back(options_, options_.parts[i]);
    server.updater.on_commit = [this, i](int64_t step, const auto& values) {
      OnCommit(static_cast<int>(i), step, values);
    };
  }
}

void StrictSimulation::Run() {
  gate_.Activate(0);
  Ask(loop_.Begin());
  for (int i = 0; i < options_.total_num_replicas; ++i) SendWait(i);
  while (RunOne()) {
    if (chaos() && Chance(1)) ReplaceSomebody();
    if (!chaos() || !Chance(1)) continue;
    Kill(static_cast<int>(Random(options_.total_num_replicas)));
  }
  CheckEnd();
}

void StrictSimulation::Post(std::function<void()> run, int64_t delay) {
  events_.push_back({now_ + delay, std::move(run)});
}

void StrictSimulation::Send(const Request& request) {
  const auto later = [this] { return Random(kLongestDelay); };
  if (chaos() && Chance(10)) Post([=] { request(true); }, later());
  if (chaos() && Chance(10)) {
    // The request or its answer is lost: the caller repeats it.
    if (Chance(50)) Post([=] { request(false); });
    Post([=] { request(true); }, later());
    return;
  }
  Post([=] { request(true); });
}

bool StrictSimulation::RunOne() {
  if (events_.empty() || now_ > kLongestRun) return false;
  ++now_;
  const auto chosen =
      static_cast<size_t>(Random(static_cast<int64_t>(events_.size())));
  if (events_[chosen].not_before > now_) return true;
  std::swap(events_[chosen], events_.back());
  const Event event = std::move(events_.back());
  events_.pop_back();
  event.run();
  return true;
}

StrictSimulation::Worker* StrictSimulation::Find(const Caller& caller) {
  Worker& worker = workers_[caller.worker];
  const bool heard = worker.alive && worker.incarnation == caller.incarnation &&
                     worker.call == caller.call;
  return heard ? &worker : nullptr;
}

StrictSimulation::Caller StrictSimulation::NewCall(int worker) {
  workers_[worker].open_items.clear();
  return {worker, workers_[worker].incarnation, ++workers_[worker].call};
}

// Now and then a request is admitted just before its sender is expired.
bool StrictSimulation::Admits(int server, const Caller& caller) {
  const auto expired = servers_[server].expired.find(caller.worker);
  return expired == servers_[server].expired.end() ||
         expired->second < caller.incarnation || (chaos() && Chance(20));
}

void StrictSimulation::OnRefused(const Caller& caller,
                                 const absl::Status& status) {
  const Worker* worker = Find(caller);
  if (worker == nullptr || worker->doomed) return;
  Break(absl::StrCat("worker ", caller.worker, ": ", status.ToString()));
}

void StrictSimulation::SendWait(int worker) {
  Pass pass = workers_[worker].pass;
  pass.worker = worker;
  pass.incarnation = workers_[worker].incarnation;
  Send([this, caller = NewCall(worker), pass,
        attempt = workers_[worker].attempt](bool heard) {
    if (!Admits(0, caller)) return;
    const uint64_t ticket = ++tickets_;
    if (heard) waits_[ticket] = caller;
    const auto answers = gate_.Wait(ticket, pass, attempt, absl::UnixEpoch());
    if (answers.ok()) {
      FinishWaits(*answers);
    } else {
      OnRefused(caller, answers.status());
    }
    if (chaos() && Chance(10)) {
      Post([this, ticket] {
        gate_.Cancel(ticket);
        FinishWaits({{ticket, server::Gate::Outcome::kCancelled}});
      });
    }
  });
}

void StrictSimulation::OnAnswer(const Caller& caller,
                                const server::Gate::Answer& answer) {
  Worker* worker = Find(caller);
  if (worker == nullptr) return;
  switch (answer.outcome) {
    case server::Gate::Outcome::kCancelled:
      SendWait(caller.worker);
      return;
    case server::Gate::Outcome::kFinished:
      worker->finished = true;
      return;
    case server::Gate::Outcome::kRedo:
      ++redone_attempts_;
      worker->attempt = answer.attempt;
      SendPushes(caller.worker);
      return;
    case server::Gate::Outcome::kToken:
      worker->counted = worker->counted && !answer.not_needed;
      EndPass(*worker);
      worker->pass.local_step = answer.step;
      worker->pass.slot = answer.slot;
      SendPulls(caller.worker);
  }
}

void StrictSimulation::SendPulls(int index) {
  Worker& worker = workers_[index];
  Caller caller = NewCall(index);
  worker.newer_seen = false;
  for (size_t k = 0; k < servers_.size(); ++k) {
    if (options_.parts[k] == 0) continue;
    caller.item = static_cast<int>(k);
    worker.open_items.insert(caller.item);
    Post([this, caller, step = worker.pass.local_step] {
      server::StrictEngine& shard = servers_[caller.item].shard;
      shard.LearnCommitted(step);
      if (shard.step() < step) {
        Break(absl::StrCat("P1: there is a token of step ", step,
                           ", but values of step ", shard.step()));
      }
      OnPulled(caller, shard.step() > step);
    });
  }
}

void StrictSimulation::OnPulled(const Caller& caller, bool newer) {
  Worker* worker = Find(caller);
  if (worker == nullptr) return;
  worker->newer_seen |= newer;
  worker->open_items.erase(caller.item);
  if (!worker->open_items.empty()) return;
  if (!worker->newer_seen) {
    SendAnnounce(caller.worker);
    return;
  }
  worker->attempt = 0;  // too slow: the step is over
  SendWait(caller.worker);
}

void StrictSimulation::SendAnnounce(int index) {
  Worker& worker = workers_[index];
  worker.counted = false;
  ++worker.pass.pass;
  worker.pass.worker = index;
  worker.pass.incarnation = worker.incarnation;
  worker.gradient = static_cast<float>(gradients_.size() + 1);
  gradients_[worker.gradient] = worker.pass;
  Send([this, caller = NewCall(index), pass = worker.pass](bool heard) {
    if (!Admits(0, caller)) return;
    const auto announced = gate_.Announce(pass);
    if (!announced.ok()) {
      OnRefused(caller, announced.status());
    } else if (heard) {
      Post([=, this] { OnAnnounced(caller, *announced); });
    }
  });
}

void StrictSimulation::OnAnnounced(const Caller& caller,
                                   const server::Gate::Announced& announced) {
  Worker* worker = Find(caller);
  if (worker == nullptr) return;
  if (announced.decision == server::Gate::Decision::kSelected) {
    worker->attempt = announced.attempt;
    SendPushes(caller.worker);
  } else {
    worker->attempt = 0;
    SendWait(caller.worker);
  }
}

// One message for every part.
void StrictSimulation::SendPushes(int index) {
  Worker& worker = workers_[index];
  Caller caller = NewCall(index);
  worker.counted = true;
  for (size_t k = 0; k < servers_.size(); ++k) {
    const int server = static_cast<int>(k);
    for (int part = 0; part < options_.parts[k]; ++part) {
      ++caller.item;
      worker.open_items.insert(caller.item);
      const server::Push push =
          server::PushOf(worker.pass, worker.attempt, part, 1, worker.gradient);
      SendPush(caller, server, push);
    }
  }
}

void StrictSimulation::SendPush(const Caller& caller, int server,
                                const server::Push& push) {
  Send([this, caller, server, push](bool heard) {
    if (!Admits(server, caller)) return;
    const uint64_t ticket = ++tickets_;
    if (heard) pushes_[ticket] = caller;
    const auto answers = servers_[server].shard.AddPush(ticket, push);
    if (answers.ok()) {
      Finish(*answers);
    } else if (!absl::IsUnavailable(answers.status())) {
      OnRefused(caller, answers.status());
    } else if (heard && Find(caller) != nullptr) {
      // The chief has yet to tell of the attempt.
      Post([=, this] { SendPush(caller, server, push); });
    }
  });
}

void StrictSimulation::OnPushed(const Caller& caller,
                                server::PushOutcome outcome) {
  Worker* worker = Find(caller);
  if (worker == nullptr || worker->open_items.erase(caller.item) == 0) return;
  if (outcome == server::PushOutcome::kStale ||
      outcome == server::PushOutcome::kSuperseded) {
    worker->counted = false;
  }
  if (worker->open_items.empty()) SendWait(caller.worker);
}

// Where N < A a push is answered before the part is updated.
void StrictSimulation::EndPass(Worker& worker) {
  if (worker.counted &&
      options_.total_num_replicas >= options_.replicas_to_aggregate) {
    claims_.emplace_back(worker.pass.local_step, worker.gradient);
  }
  worker.counted = false;
}

}  // namespace lockstep
