#ifndef LOCKSTEP_TESTS_BENCHMARK_TIMED_STEP_CLIENT_H_
#define LOCKSTEP_TESTS_BENCHMARK_TIMED_STEP_CLIENT_H_

#include <cstdint>
#include <vector>

#include "tests/benchmark/step_samples.h"
#include "worker/step_client.h"

namespace lockstep::benchmark {

// TimedStepClient passes every call on and notes how long it took. A step ends
// when the next token is there.
//
// Borrows: the client that does the work.
class TimedStepClient final : public StepClient {
 public:
  explicit TimedStepClient(StepClient& client) : client_(client) {}

  absl::StatusOr<int64_t> Pull(int64_t step) override {
    const Stopwatch watch(now_.pull);
    return client_.Pull(step);
  }
  absl::StatusOr<Announcement> Announce(const PassId& pass) override {
    const Stopwatch watch(now_.announce);
    return client_.Announce(pass);
  }
  absl::StatusOr<PushCounts> Push(const PassId& pass,
                                  int64_t attempt) override {
    const Stopwatch watch(now_.push);
    return client_.Push(pass, attempt);
  }
  absl::StatusOr<Token> TakeToken(const PassId& pass,
                                  int64_t attempt) override {
    absl::StatusOr<Token> token = TimedToken(pass, attempt);
    EndStep();
    return token;
  }

  // One for each step that has ended.
  const std::vector<StepSample>& samples() const { return samples_; }

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

  absl::StatusOr<Token> TimedToken(const PassId& pass, int64_t attempt) {
    const Stopwatch watch(now_.token);
    return client_.TakeToken(pass, attempt);
  }

  void EndStep() {
    const int64_t now = NowNanoseconds();
    now_.total = now - step_began_;
    if (step_began_ != 0) samples_.push_back(now_);
    now_ = {};
    step_began_ = now;
  }

  StepClient& client_;
  int64_t step_began_ = 0;  // 0 before the first token
  StepSample now_;
  std::vector<StepSample> samples_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TIMED_STEP_CLIENT_H_
