// A worker whose next pass begins before the step is committed. The test is the
// chief.

#include <cstdint>
#include <cstring>
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

// Remembers what its passes read. Gradients are 2 in the first pass, then 4 ...
//
// Threads: safe to share.
class WaitingSource final : public worker::GradientSource {
 public:
  explicit WaitingSource(const worker::ParameterMemory& memory)
      : memory_(memory) {}

  bool MayBeginEarly() const override { return true; }
  absl::Status Begin(int64_t index, worker::GradientPass& pass) override {
    index_ = index;
    for (size_t variable = 0; variable < 2; ++variable) {
      LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(variable, 1));
    }
    Note(forward_, memory_.value(0));
    return absl::OkStatus();
  }
  absl::StatusOr<worker::GradientResult> Finish(
      worker::GradientPass& pass) override {
    const auto gradient = 2 * static_cast<float>(index_ + 1);
    Fill(memory_.gradient(0), gradient);
    Fill(memory_.gradient(1), static_cast<double>(gradient));
    Note(backward_, memory_.value(0));
    for (const size_t variable : {1, 0}) pass.GradientReady(variable);
    return worker::GradientResult{0, 1};
  }

  // The value of "w" that pass number `pass` read, once it has.
  float ForwardOf(size_t pass) { return Wait(forward_, pass); }
  float BackwardOf(size_t pass) { return Wait(backward_, pass); }
  size_t backward_passes() {
    MutexLock lock(mutex_);
    return backward_.size();
  }

 private:
  template <typename T>
  static void Fill(absl::Span<std::byte> to, T value) {
    for (size_t i = 0; i < to.size(); i += sizeof(T)) {
      std::memcpy(to.data() + i, &value, sizeof(T));
    }
  }
  void Note(std::vector<float>& seen, absl::Span<const std::byte> value) {
    MutexLock lock(mutex_);
    std::memcpy(&seen.emplace_back(), value.data(), sizeof(float));
    changed_.SignalAll();
  }
  float Wait(const std::vector<float>& seen, size_t pass) {
    MutexLock lock(mutex_);
    while (seen.size() < pass) changed_.Wait(mutex_);
    return seen[pass - 1];
  }

  const worker::ParameterMemory& memory_;
  int64_t index_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::vector<float> forward_;
  std::vector<float> backward_;
};

class EarlyPassTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shard_.set_workers(1);
    shard_.Open();
    worker_ = std::thread([this] {
      result_ = worker::TrainingLoop({SyncMode::kStrict, 1, 1, 0, 0}, client_,
                                     source_, meter_)
                    .Run();
    });
  }

  ServedShard shard_;
  const Plan plan_ = ServedShard::MakePlan();
  worker::ParameterMemory memory_ =
      *worker::ParameterMemory::Make(plan_.variables);
  worker::ParameterClient client_{
      {{shard_.address()}, {kJobId, {TaskType::kWorker, 0}, 1}, 32},
      plan_,
      memory_};
  WaitingSource source_{memory_};
  worker::ProgressMeter meter_{Clock::Real()};
  std::thread worker_;
  absl::Status result_;
};

TEST_F(EarlyPassTest, ForwardReadsValuesOfAStepThatIsStillToBeCommitted) {
  float value = 1;
  for (int64_t step = 0; step < 5; ++step) {
    EXPECT_EQ(source_.BackwardOf(step + 1), value);
    value -= 0.5f * 2 * static_cast<float>(step + 1);

    EXPECT_EQ(source_.ForwardOf(step + 2), value);

    EXPECT_EQ(source_.backward_passes(), step + 1u);
    shard_.FinishStep(step);
  }
  EXPECT_EQ(source_.BackwardOf(6), value);
  EXPECT_EQ(meter_.Get().accepted, 5);

  v1::CloseTokensRequest close;
  *close.mutable_chief() = shard_.Chief();
  EXPECT_OK(Call(shard_.control(), &v1::ShardControlService::Stub::CloseTokens,
                 close));
  worker_.join();
  EXPECT_THAT(result_, IsOk());
}

TEST_F(EarlyPassTest, CancelEndsAPassThatWaitsForItsToken) {
  source_.ForwardOf(2);

  client_.Cancel();

  worker_.join();
  EXPECT_THAT(result_, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(source_.backward_passes(), 1u);
}

}  // namespace
}  // namespace lockstep::testing
