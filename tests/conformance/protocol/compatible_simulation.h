#ifndef LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_COMPATIBLE_SIMULATION_H_
#define LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_COMPATIBLE_SIMULATION_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/step/compatible/compatible_engine.h"
#include "server/step/compatible/compatible_gate.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep {

// CompatibleSimulation runs the cores of compatible mode with workers that
// take a given time for a pass, in simulated time: push, take a token, begin
// the next pass. Messages take no time; workers that are ready at the same
// moment go in order of index.
class CompatibleSimulation {
 public:
  struct Options {
    int replicas_to_aggregate = 1;   // A
    std::vector<int64_t> durations;  // of a pass, by worker; so many are N
    int initial_tokens = 0;          // I
    int num_parts = 2;
    // Worker `worker`'s gradient of a part, in its pass number `pass`.
    std::function<float(int worker, int64_t pass, int part)> gradient =
        [](int worker, int64_t, int) { return static_cast<float>(worker); };
  };
  struct Drop {
    int64_t stamp = 0;
    int64_t server_step = 0;

    bool operator==(const Drop&) const = default;
  };

  explicit CompatibleSimulation(const Options& options)
      : options_(options),
        updater_(options.num_parts),
        shard_(options.replicas_to_aggregate,
               std::vector<server::CompatiblePart>(options.num_parts),
               updater_),
        gate_({options.initial_tokens,
               std::max(options.replicas_to_aggregate,
                        static_cast<int>(options.durations.size()))}),
        workers_(options.durations.size()) {
    gate_.Activate(0);
    Take();
  }

  // Lets a worker make its next pass, whatever the time.
  void RunPass(int index) {
    Worker& worker = workers_[index];
    const Pass pass{index, worker.incarnation, worker.local_step,
                    ++worker.passes, 0};
    server::Push push{pass, 0, 0, {}};
    for (int part = 0; part < options_.num_parts; ++part) {
      push.gradients.push_back(
          server::GradientOf(options_.gradient(index, worker.passes, part)));
    }
    absl::StatusOr<server::ShardAnswers> answers =
        shard_.AddPush(1, std::move(push));
    ASSERT_OK(answers);
    Count(index, pass, answers->pushes.at(0));
    OnTakes(answers->takes);
    worker.waits = true;
    const auto tokens = gate_.Wait(index, pass, 0, absl::UnixEpoch());
    ASSERT_OK(tokens);
    OnTokens(*tokens);
  }

  // Until `step` is the global step, or nothing moves any more.
  void RunTo(int64_t step) {
    while (gate_.global_step() < step) {
      int next = -1;
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (workers_[i].dead || workers_[i].waits) continue;
        if (next < 0 || ReadyAt(i) < ReadyAt(next)) next = static_cast<int>(i);
      }
      if (next < 0) return;
      now_ = ReadyAt(next);
      ASSERT_NO_FATAL_FAILURE(RunPass(next));
    }
  }

  void Kill(int worker) { workers_[worker].dead = true; }
  // Its first pass is free, and stamped with the global step.
  void Restart(int index) {
    const uint64_t incarnation = workers_[index].incarnation + 1;
    workers_[index] = Worker();
    workers_[index].incarnation = incarnation;
    workers_[index].local_step = gate_.global_step();
    workers_[index].began = now_;
  }
  void Expire(int worker) {
    OnTokens(gate_.Expire(worker, workers_[worker].incarnation).answers);
  }

  int64_t global_step() const { return gate_.global_step(); }
  int64_t local_step(int worker) const { return workers_[worker].local_step; }
  // Gradients of each worker that counted.
  std::vector<int64_t> accepted() const {
    std::vector<int64_t> accepted;
    for (const Worker& worker : workers_) accepted.push_back(worker.accepted);
    return accepted;
  }
  const std::vector<Drop>& drops() const { return drops_; }
  // By worker: the passes of which nothing counted.
  const std::map<int, std::vector<int64_t>>& dropped_passes() const {
    return dropped_passes_;
  }
  const server::FakePartUpdater& updater() const { return updater_; }
  const server::CompatibleEngine& shard() const { return shard_; }
  const server::CompatibleGate& gate() const { return gate_; }

 private:
  struct Worker {
    uint64_t incarnation = 1;
    int64_t local_step = 0;
    int64_t passes = 0;
    int64_t began = 0;  // the pass at hand
    bool waits = false;
    bool dead = false;
    int64_t accepted = 0;
  };

  int64_t ReadyAt(size_t worker) const {
    return workers_[worker].began + options_.durations[worker];
  }

  void Count(int index, const Pass& pass, const server::PushAnswer& answer) {
    if (answer.outcomes[0] == server::PushOutcome::kAccepted) {
      ++workers_[index].accepted;
    } else {
      drops_.push_back({pass.local_step, answer.server_step});
      dropped_passes_[index].push_back(pass.pass);
    }
  }

  void OnTokens(const std::vector<server::Gate::Answer>& answers) {
    for (const server::Gate::Answer& answer : answers) {
      if (answer.outcome != server::Gate::Outcome::kToken) continue;
      Worker& worker = workers_[answer.ticket];
      worker.local_step = answer.step;
      worker.waits = false;
      worker.began = now_;
    }
  }

  // The chief's loop.
  void Take() {
    const auto answers = shard_.Take(0, shard_.step());
    ASSERT_OK(answers);
    OnTakes(answers->takes);
  }
  void OnTakes(const std::vector<server::TakeAnswer>& answers) {
    if (answers.empty()) return;
    ASSERT_TRUE(answers[0].prepared);
    const int64_t step = shard_.step() + 1;
    const auto tokens = gate_.Commit(step, 0);
    ASSERT_OK(tokens);
    ASSERT_OK(shard_.Commit(step, 0));
    OnTokens(*tokens);
    Take();
  }

  const Options options_;
  server::FakePartUpdater updater_;
  server::CompatibleEngine shard_;
  server::CompatibleGate gate_;
  std::vector<Worker> workers_;
  int64_t now_ = 0;
  std::vector<Drop> drops_;
  std::map<int, std::vector<int64_t>> dropped_passes_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_COMPATIBLE_SIMULATION_H_
