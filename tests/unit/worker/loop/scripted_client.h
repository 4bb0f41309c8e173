#ifndef LOCKSTEP_TESTS_UNIT_WORKER_LOOP_SCRIPTED_CLIENT_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_LOOP_SCRIPTED_CLIENT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "worker/loop/gradient_source.h"
#include "worker/loop/step_client.h"
#include "worker/loop/training_loop.h"

namespace lockstep::testing {

// Answers from a script and writes down what it was asked.
class ScriptedClient final : public worker::StepClient {
 public:
  absl::StatusOr<int64_t> Pull(int64_t step) override {
    calls.push_back("pull " + std::to_string(step));
    if (!later.empty()) {
      const int64_t found = later.front();
      later.pop_front();
      return found;
    }
    return pulled.has_value() ? *pulled : step;
  }
  absl::StatusOr<int64_t> PullAgain(int64_t step, PulledAgain what) override {
    calls.push_back(
        (what == PulledAgain::kRows ? "pull rows " : "pull next batch ") +
        std::to_string(step));
    return pulled.has_value() ? *pulled : step;
  }
  void BeginPass(const PassId&, PassKind, bool watch) override {
    if (watch) calls.push_back("watch");
    over = false;
  }
  bool StepIsOver() const override { return over; }
  void GradientReady(size_t variable) override {
    calls.push_back("ready " + std::to_string(variable));
  }
  absl::StatusOr<worker::Announcement> Announce(const PassId& pass) override {
    calls.push_back("announce " + std::to_string(pass.step) + "." +
                    std::to_string(pass.slot));
    return announcements.Next();
  }
  absl::StatusOr<worker::PushCounts> Push(const PassId& pass,
                                          int64_t attempt) override {
    calls.push_back("push " + std::to_string(pass.step) + " attempt " +
                    std::to_string(attempt));
    return pushes.Next();
  }
  bool PushesBringValues() const override { return brings_values; }
  void SendRest(const PassId& pass, int64_t attempt) override {
    calls.push_back("send " + std::to_string(pass.step) + " attempt " +
                    std::to_string(attempt));
  }
  absl::Status AwaitValues(size_t first, size_t count) override {
    EXPECT_EQ(count, 1u);
    calls.push_back("await " + std::to_string(first));
    return awaited;
  }
  absl::StatusOr<worker::Token> TakeToken(const PassId& pass,
                                          int64_t attempt) override {
    calls.push_back("token after " + std::to_string(pass.step) + " attempt " +
                    std::to_string(attempt));
    return tokens.Next();
  }

  template <typename T>
  struct Script {
    std::deque<absl::StatusOr<T>> answers;
    absl::StatusOr<T> Next() {
      if (answers.empty()) return absl::CancelledError("end of the script");
      absl::StatusOr<T> answer = answers.front();
      answers.pop_front();
      return answer;
    }
  };
  bool brings_values = true;
  std::optional<int64_t> pulled;
  std::deque<int64_t> later;  // steps of the next pulls, before `pulled`
  bool over = false;          // the step, until the next pass
  absl::Status awaited;
  Script<worker::Announcement> announcements;
  Script<worker::PushCounts> pushes;
  Script<worker::Token> tokens;
  std::vector<std::string> calls;
};

// Computes nothing, layer by layer.
class CountingSource final : public worker::GradientSource {
 public:
  absl::Status Begin(int64_t index, worker::GradientPass& pass) override {
    if (index >= end) return absl::OutOfRangeError("end of input");
    batches.push_back(index);
    if (at_begin) at_begin();
    if (pulls_rows) LOCKSTEP_RETURN_IF_ERROR(pass.PullRows());
    for (int layer = 0; layer < layers && may_begin_early; ++layer) {
      LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(layer, 1));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<worker::GradientResult> Finish(
      worker::GradientPass& pass) override {
    for (int layer = layers - 1; layer >= 0; --layer) {
      if (before_layer) before_layer(layer);
      LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
      pass.GradientReady(layer);
    }
    LOCKSTEP_RETURN_IF_ERROR(failure);
    return worker::GradientResult{0.5, 10};
  }
  bool MayBeginEarly() const override { return may_begin_early; }
  void PrepareEarly(const PassId& pass) override {
    early_steps.push_back(pass.step);
  }

  bool pulls_rows = false;
  bool may_begin_early = false;
  int64_t end = INT64_MAX;
  int layers = 0;  // that report a gradient each
  std::function<void()> at_begin;
  std::function<void(int layer)> before_layer;
  absl::Status failure;
  std::vector<int64_t> batches;
  std::vector<int64_t> early_steps;
};

inline worker::Token TokenFor(int64_t step, int slot = 0) {
  return {worker::Token::Kind::kToken, step, slot, 0};
}
inline const worker::Token kFinished{worker::Token::Kind::kFinished};

class TrainingLoopFixture : public ::testing::Test {
 protected:
  absl::Status Run(const worker::TrainingLoop::Options& options) {
    return worker::TrainingLoop(options, client_, source_, meter_).Run();
  }

  const worker::TrainingLoop::Options kStrict{SyncMode::kStrict, 2, 3, 1, 0};
  const worker::TrainingLoop::Options kNoBackups{SyncMode::kStrict, 2, 2, 1, 0};
  const worker::TrainingLoop::Options kCompatible{SyncMode::kCompatible, 2, 3,
                                                  1, 7};
  ScriptedClient client_;
  CountingSource source_;
  ManualClock clock_;
  worker::ProgressMeter meter_{clock_};
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_LOOP_SCRIPTED_CLIENT_H_
