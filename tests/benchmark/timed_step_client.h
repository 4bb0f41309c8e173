#ifndef LOCKSTEP_TESTS_BENCHMARK_TIMED_STEP_CLIENT_H_
#define LOCKSTEP_TESTS_BENCHMARK_TIMED_STEP_CLIENT_H_

#include <cstdint>

#include "tests/benchmark/step_samples.h"
#include "worker/loop/step_client.h"

namespace lockstep::benchmark {

// TimedStepClient forwards every call and records its duration. A sample ends
// with a token of a later step; tokens of the same step belong to it.
//
// Borrows: the client that does the work, and the recorder.
class TimedStepClient final : public worker::StepClient {
 public:
  TimedStepClient(worker::StepClient& client, RunRecorder& recorder)
      : client_(client), recorder_(recorder) {}

  absl::StatusOr<int64_t> Pull(int64_t step) override {
    const Stopwatch watch(now_.pull);
    return client_.Pull(step);
  }
  absl::StatusOr<int64_t> PullAgain(int64_t step, PulledAgain what) override {
    const Stopwatch watch(now_.pull);
    return client_.PullAgain(step, what);
  }
  void BeginPass(const PassId& pass, PassKind kind, bool watch) override {
    client_.BeginPass(pass, kind, watch);
  }
  bool StepIsOver() const override { return client_.StepIsOver(); }
  void GradientReady(size_t variable) override {
    client_.GradientReady(variable);
  }
  void BeginPush(const PassId& pass, int64_t attempt) override {
    const Stopwatch watch(now_.push);
    client_.BeginPush(pass, attempt);
  }
  absl::StatusOr<worker::Announcement> Announce(const PassId& pass) override {
    const Stopwatch watch(now_.announce);
    return client_.Announce(pass);
  }
  absl::StatusOr<worker::PushCounts> Push(const PassId& pass,
                                          int64_t attempt) override {
    const Stopwatch watch(now_.push);
    return client_.Push(pass, attempt);
  }
  void SendRest(const PassId& pass, int64_t attempt) override {
    const Stopwatch watch(now_.push);
    client_.SendRest(pass, attempt);
  }
  bool PushesBringValues() const override {
    return client_.PushesBringValues();
  }
  absl::Status AwaitValues(size_t first, size_t count) override {
    const Stopwatch watch(now_.push);
    return client_.AwaitValues(first, count);
  }
  absl::StatusOr<worker::Token> TakeToken(const PassId& pass,
                                          int64_t attempt) override {
    absl::StatusOr<worker::Token> token = TimedToken(pass, attempt);
    if (token.ok() && token->kind == worker::Token::Kind::kToken)
      Reach(token->step);
    return token;
  }

 private:
  class Stopwatch {
   public:
    explicit Stopwatch(int64_t& total)
        : total_(total), began_(NowNanoseconds()) {}
    ~Stopwatch() { total_ += NowNanoseconds() - began_; }

   private:
    int64_t& total_;
    const int64_t began_;
  };

  absl::StatusOr<worker::Token> TimedToken(const PassId& pass,
                                           int64_t attempt) {
    const Stopwatch watch(now_.token);
    return client_.TakeToken(pass, attempt);
  }

  void Reach(int64_t step) {
    if (step <= step_) return;
    now_.total = NowNanoseconds() - began_;
    now_.steps = step - step_;
    if (step_ >= 0) recorder_.Add(now_);
    now_ = {};
    step_ = step;
    began_ = NowNanoseconds();
  }

  worker::StepClient& client_;
  RunRecorder& recorder_;
  int64_t step_ = -1;  // of the latest token; -1 before the first
  int64_t began_ = 0;  // time of that token
  StepSample now_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TIMED_STEP_CLIENT_H_
