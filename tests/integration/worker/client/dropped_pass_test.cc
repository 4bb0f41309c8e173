// A backup that is much slower than the worker whose gradients count. The test
// is that worker, and the chief.

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"
#include "worker/loop/training_loop.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

// SlowSource is a model with more layers than any step has time for.
//
// Threads: safe to share.
class SlowSource final : public worker::GradientSource {
 public:
  absl::Status Begin(int64_t index, worker::GradientPass& /*pass*/) override {
    MutexLock lock(mutex_);
    begun_.push_back(index);
    changed_.SignalAll();
    return absl::OkStatus();
  }
  absl::StatusOr<worker::GradientResult> Finish(
      worker::GradientPass& pass) override {
    while (true) {
      {
        MutexLock lock(mutex_);
        changed_.WaitFor(mutex_, std::chrono::milliseconds(1));
        is_in_it_ = in_a_long_layer_;
        if (is_in_it_) changed_.SignalAll();
        while (in_a_long_layer_) changed_.Wait(mutex_);
      }
      LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    }
  }

  // Waits for the pass number `count`; returns its step.
  int64_t WaitForPass(size_t count) {
    MutexLock lock(mutex_);
    while (begun_.size() < count) changed_.Wait(mutex_);
    return begun_[count - 1];
  }

  // Returns when a pass has begun one that lasts until EndLongLayer().
  void BeginLongLayer() {
    MutexLock lock(mutex_);
    in_a_long_layer_ = true;
    while (!is_in_it_) changed_.Wait(mutex_);
  }
  void EndLongLayer() {
    MutexLock lock(mutex_);
    in_a_long_layer_ = false;
    changed_.SignalAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int64_t> begun_ ABSL_GUARDED_BY(mutex_);
  bool in_a_long_layer_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_in_it_ ABSL_GUARDED_BY(mutex_) = false;  // the pass
};

class DroppedPassTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shard_.Open();
    backup_ = std::thread([this] {
      result_ = worker::TrainingLoop({SyncMode::kStrict, 1, 2, 1, 0}, client_,
                                     source_, meter_)
                    .Run();
    });
  }
  // Ends training, which ends the backup's last pass.
  void Finish() {
    v1::CloseTokensRequest close;
    *close.mutable_chief() = shard_.Chief();
    EXPECT_OK(Call(shard_.control(),
                   &v1::ShardControlService::Stub::CloseTokens, close));
    backup_.join();
    EXPECT_THAT(result_, IsOk());
  }

  ServedShard shard_;
  const Plan plan_ = ServedShard::MakePlan();
  worker::ParameterMemory memory_ =
      *worker::ParameterMemory::Make(plan_.variables);
  worker::ParameterClient client_{
      {{shard_.address()}, {kJobId, {TaskType::kWorker, 1}, 1}, 32},
      plan_,
      memory_};
  SlowSource source_;
  worker::ProgressMeter meter_{Clock::Real()};
  std::thread backup_;
  absl::Status result_;
};

TEST_F(DroppedPassTest, EveryPassBeginsOnTheNewestStepAndDelaysNoStep) {
  constexpr int kSteps = 10;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(source_.WaitForPass(step + 1), step);

    shard_.Step(step, 1);
  }
  source_.WaitForPass(kSteps + 1);

  Finish();

  EXPECT_EQ(meter_.Get().stale, kSteps + 1);
  EXPECT_EQ(meter_.Get().accepted, 0);
  EXPECT_EQ(meter_.Get().passes, kSteps + 1);
}

TEST_F(DroppedPassTest, StepsThatPassedMeanwhileAreSkipped) {
  EXPECT_EQ(source_.WaitForPass(1), 0);
  source_.BeginLongLayer();
  for (int step = 0; step < 5; ++step) shard_.Step(step, 1);

  source_.EndLongLayer();

  EXPECT_EQ(source_.WaitForPass(2), 5);
  Finish();
  EXPECT_EQ(meter_.Get().stale, 2);
}

TEST_F(DroppedPassTest, EndOfTrainingEndsThePass) {
  source_.WaitForPass(1);

  Finish();

  EXPECT_EQ(meter_.Get().stale, 1);
}

}  // namespace
}  // namespace lockstep::testing
