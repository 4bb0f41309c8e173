// The part of StrictSimulation that plays the chief and looks at what the
// servers answer and commit.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/conformance/protocol/strict_simulation.h"

namespace lockstep {

void StrictSimulation::FinishWaits(
    const std::vector<server::Gate::Answer>& answers) {
  for (const server::Gate::Answer& answer : answers) {
    const auto found = waits_.find(answer.ticket);
    if (found == waits_.end()) continue;
    Post([this, caller = found->second, answer] { OnAnswer(caller, answer); });
    waits_.erase(found);
  }
}

void StrictSimulation::Finish(const server::ShardAnswers& answers) {
  for (const server::PushAnswer& answer : answers.pushes) {
    const auto found = pushes_.find(answer.ticket);
    if (found == pushes_.end()) continue;
    Post([this, caller = found->second, outcome = answer.outcomes[0]] {
      OnPushed(caller, outcome);
    });
    pushes_.erase(found);
  }
  for (const server::TakeAnswer& answer : answers.takes) {
    const auto found = takes_.find(answer.ticket);
    if (found == takes_.end()) continue;
    Post([this, call = found->second, answer] { OnTake(call, answer); });
    takes_.erase(found);
  }
}

void StrictSimulation::OnCommit(int server, int64_t step,
                                const std::vector<std::vector<float>>& values) {
  if (gate_.global_step() < step) {
    Break(absl::StrCat("server ", server, " committed step ", step,
                       " before ps task 0 did"));
  }
  for (const std::vector<float>& gradients : values) {
    const auto [set, first] = sets_.try_emplace(step, gradients);
    if (set->second != gradients) {
      Break(absl::StrCat("step ", step, " is made of {",
                         absl::StrJoin(set->second, ","), "} and of {",
                         absl::StrJoin(gradients, ","), "}"));
    }
    if (first) CheckSet(step, gradients);
  }
}

// One gradient for each share of the step, in order, and just the gate's set.
void StrictSimulation::CheckSet(int64_t step,
                                const std::vector<float>& gradients) {
  std::vector<int> workers;
  std::map<int, uint64_t> incarnations;
  std::pair<int, int> last(-1, -1);
  for (float gradient : gradients) {
    const Pass& pass = gradients_[gradient];
    const std::pair<int, int> share(pass.worker, pass.slot);
    workers.push_back(pass.worker);
    incarnations.try_emplace(pass.worker, pass.incarnation);
    if (share <= last) Break("P3: a share counted twice, or out of order");
    if (pass.local_step != step - 1) Break("P2: a stale gradient counted");
    if (incarnations[pass.worker] != pass.incarnation) {
      Break("gradients of two incarnations of a worker counted");
    }
    last = share;
  }
  if (workers != members_[step]) {
    Break(absl::StrCat("step ", step, " is of workers ",
                       absl::StrJoin(workers, ","), ", its set is ",
                       absl::StrJoin(members_[step], ",")));
  }
}

void StrictSimulation::Ask(const chief::SyncLoop::Actions& actions) {
  for (int server : actions.takes) SendTake(server, loop_.step());
  if (actions.commit.has_value()) SendCommit(*actions.commit);
}

void StrictSimulation::SendTake(int server, int64_t step) {
  const uint64_t call = ++take_calls_[server];
  Send([=, this](bool heard) {
    const uint64_t ticket = ++tickets_;
    if (heard) takes_[ticket] = {server, call, step};
    const auto answers = servers_[server].shard.Take(ticket, step);
    if (answers.ok()) {
      Finish(*answers);
    } else if (take_calls_[server] == call && loop_.step() == step) {
      Break(absl::StrCat("take refused: ", answers.status().ToString()));
    }
    if (!chaos() || !Chance(10)) return;
    Post([this, server, ticket] {
      servers_[server].shard.CancelTake(ticket);
      server::ShardAnswers nothing;
      nothing.takes.push_back({ticket, false, 0, absl::OkStatus()});
      Finish(nothing);
    });
  });
}

void StrictSimulation::OnTake(const TakeCall& call,
                              const server::TakeAnswer& answer) {
  if (take_calls_[call.server] != call.call) return;
  ++take_calls_[call.server];
  Ask(answer.prepared ? loop_.OnPrepared(call.server, call.step, answer.attempt)
                      : loop_.OnTakeAgain(call.server, call.step));
}

void StrictSimulation::SendCommit(const chief::SyncLoop::CommitAction& commit) {
  const uint64_t call = ++commit_call_;
  Send([this, commit, call](bool) { PerformCommit(commit, call); });
}

void StrictSimulation::PerformCommit(
    const chief::SyncLoop::CommitAction& commit, uint64_t call) {
  const bool first = gate_.global_step() < commit.step;
  const std::vector<int> members = gate_.Members();
  const auto tokens = gate_.Commit(commit.step, commit.attempt);
  if (!tokens.ok()) {
    Post([this, call] {
      if (commit_call_ == call) Ask(loop_.OnCommitRefused());
    });
    return;
  }
  if (first) members_[commit.step] = members;
  const auto values = [this, commit, call, first, tokens = *tokens] {
    const auto answers = servers_[0].shard.Commit(commit.step, commit.attempt);
    if (first && !answers.ok()) {
      Break(absl::StrCat("P1: ", answers.status().ToString()));
    }
    FinishWaits(tokens);
    Post([=, this] { OnCommitted(call, commit); });
  };
  // Others may be served between the two halves of a commit.
  if (Chance(70)) {
    values();
  } else {
    Post(values);
  }
}

void StrictSimulation::OnCommitted(
    uint64_t call, const chief::SyncLoop::CommitAction& commit) {
  if (commit_call_ != call) return;
  ++commit_call_;
  loop_.OnCommitted(commit.step);
  if (loop_.step() < options_.steps) {
    Ask(loop_.Begin());
  } else {
    FinishWaits(gate_.Finish());
  }
}

// Half of those that are taken for dead live on for a while.
void StrictSimulation::Kill(int index) {
  Worker& worker = workers_[index];
  if (worker.doomed || worker.finished) return;
  ++deaths_;
  worker.doomed = true;
  worker.alive = Chance(50);
  Post([this, index, incarnation = worker.incarnation] {
    Bury(index, incarnation);
  });
}

void StrictSimulation::ReplaceSomebody() {
  const auto worker = static_cast<int>(Random(options_.total_num_replicas));
  const int64_t attempt = 1 + Random(3);
  const server::Gate::Replaced replaced =
      gate_.Replace(worker, gate_.global_step(), attempt);
  if (!replaced.by.has_value()) return;
  ++replaced_;
  FinishWaits(replaced.answers);
  TellOfAttempt(0, replaced.step, replaced.attempt);
}

void StrictSimulation::TellOfAttempt(size_t server, int64_t step,
                                     int64_t attempt) {
  if (server == servers_.size()) return;
  Finish(servers_[server].shard.StartAttempt(step, attempt));
  Post([=, this] { TellOfAttempt(server + 1, step, attempt); });
}

void StrictSimulation::Bury(int worker, uint64_t incarnation) {
  servers_[0].expired[worker] = incarnation;
  const server::Gate::Expired expired = gate_.Expire(worker, incarnation);
  const auto rest = [=, this] {
    Finish(servers_[0].shard.StartAttempt(expired.step, expired.attempt));
    FinishWaits(expired.answers);
    Post([=, this] {
      BuryOn(1, worker, incarnation, expired.step, expired.attempt);
    });
  };
  if (Chance(70)) {
    rest();
  } else {
    Post(rest);
  }
}

void StrictSimulation::BuryOn(size_t server, int worker, uint64_t incarnation,
                              int64_t step, int64_t attempt) {
  if (server == servers_.size()) {
    Post([=, this] { Restart(worker, incarnation); });
    return;
  }
  servers_[server].expired[worker] = incarnation;
  Finish(servers_[server].shard.StartAttempt(step, attempt));
  Post([=, this] { BuryOn(server + 1, worker, incarnation, step, attempt); });
}

void StrictSimulation::Restart(int index, uint64_t incarnation) {
  const uint64_t call = workers_[index].call;
  workers_[index] = Worker();
  workers_[index].incarnation = incarnation + 1;
  workers_[index].call = call;
  SendWait(index);
}

void StrictSimulation::CheckEnd() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    // The end of the job also ends a pass for a step that nobody will take.
    if (workers_[i].finished || workers_[i].pass.local_step == options_.steps) {
      continue;
    }
    Break(absl::StrCat("P6: worker ", i, " waits for ever after step ",
                       workers_[i].pass.local_step, ", attempt ",
                       workers_[i].attempt, "; global step ",
                       gate_.global_step()));
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].shard.LearnCommitted(gate_.global_step());
    if (servers_[i].shard.step() != gate_.global_step()) {
      Break(absl::StrCat("P1: server ", i, " never prepared the last step"));
    }
  }
  for (const auto& [step, gradient] : claims_) {
    const std::vector<float>& set = sets_[step + 1];
    if (std::find(set.begin(), set.end(), gradient) == set.end()) {
      Break("a gradient that was said to count did not");
    }
  }
}

}  // namespace lockstep
