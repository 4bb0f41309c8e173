// StrictEngine from many threads at once: updates that run while something else
// happens, and an invariant under load.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Lets one thread wait for another.
class Signal {
 public:
  void Set() {
    MutexLock lock(mutex_);
    set_ = true;
    changed_.SignalAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!set_) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

server::Push PushFor(int worker, int64_t attempt, int first_part, int num_parts,
                     int64_t step = 0) {
  return server::PushOf({worker, 1, step, step + 1, 0}, attempt, first_part,
                        num_parts, static_cast<float>(100 * worker + attempt));
}

// A part whose first update stays in Update() until it is told to end.
class SlowUpdateTest : public ::testing::Test {
 protected:
  SlowUpdateTest() {
    updater_.on_update = [this](int, int64_t) {
      if (updates_++ == 0) {
        entered_.Set();
        leave_.Wait();
      }
      return absl::OkStatus();
    };
    EXPECT_OK(shard_.AddPush(1, PushFor(0, 1, 0, 1)));
    slow_ = std::thread([this] {
      auto answers = shard_.AddPush(2, PushFor(1, 1, 0, 1));
      EXPECT_OK(answers);
      if (answers.ok()) slow_answers_ = *std::move(answers);
    });
    entered_.Wait();
  }
  ~SlowUpdateTest() override { EndUpdate(); }

  void EndUpdate() {
    leave_.Set();
    if (slow_.joinable()) slow_.join();
  }

  server::FakePartUpdater updater_{1};
  server::StrictEngine shard_{
      {.replicas_to_aggregate = 2, .total_num_replicas = 3}, updater_};
  std::atomic<int> updates_ = 0;
  Signal entered_;
  Signal leave_;
  std::thread slow_;
  server::ShardAnswers slow_answers_;
};

TEST_F(SlowUpdateTest, CallsDoNotWaitForAnUpdateThatRuns) {
  EXPECT_EQ(shard_.step(), 0);
  EXPECT_EQ(shard_.WaitsFor(), "");
  EXPECT_THAT(shard_.Take(9, 0)->takes, IsEmpty());
  EXPECT_THAT(shard_.Commit(1, 1), lockstep::testing::StatusIs(
                                       absl::StatusCode::kFailedPrecondition));

  EndUpdate();

  EXPECT_THAT(slow_answers_.pushes, SizeIs(2));
  EXPECT_THAT(slow_answers_.takes, SizeIs(1));
}

TEST_F(SlowUpdateTest, UpdateOfAnAttemptGivenUpIsNotCommitted) {
  const server::ShardAnswers superseded = shard_.StartAttempt(0, 2);
  EXPECT_THAT(superseded.pushes, SizeIs(2));

  EndUpdate();

  EXPECT_THAT(slow_answers_.pushes, IsEmpty());
  EXPECT_THAT(updater_.log(), IsEmpty());
  shard_.LearnCommitted(1);
  EXPECT_EQ(shard_.step(), 0);
}

TEST_F(SlowUpdateTest, NextAttemptIsUpdatedAfterItAndNeverBeside) {
  shard_.StartAttempt(0, 2);
  ASSERT_OK(shard_.Take(9, 0));
  ASSERT_OK(shard_.AddPush(3, PushFor(0, 2, 0, 1)));
  ASSERT_OK(shard_.AddPush(4, PushFor(2, 2, 0, 1)));
  EXPECT_EQ(updates_, 1);

  EndUpdate();

  EXPECT_FALSE(updater_.overlapped());
  EXPECT_THAT(slow_answers_.pushes, SizeIs(2));
  ASSERT_THAT(slow_answers_.takes, SizeIs(1));
  EXPECT_EQ(slow_answers_.takes[0].attempt, 2);
  ASSERT_OK(shard_.Commit(1, 2));
  EXPECT_THAT(updater_.committed(), ElementsAre(ElementsAre(2, 202)));
}

TEST_F(SlowUpdateTest, RepeatedPushWaitsForTheUpdateThatRuns) {
  EXPECT_THAT(shard_.AddPush(5, PushFor(0, 1, 0, 1))->pushes, IsEmpty());

  EndUpdate();

  EXPECT_THAT(slow_answers_.pushes, SizeIs(3));
  EXPECT_EQ(updates_, 1);
}

// Five workers of which three count, each part of each push in a message of
// its own, some of them twice, in random order, from one thread a worker.
class ManyThreadsTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 6;
  static constexpr int kWorkers = 5;
  static constexpr int kMembers = 3;
  static constexpr int64_t kSteps = 60;

  ManyThreadsTest() {
    updater_.on_commit = [this](int64_t, const auto& values) {
      values_.push_back(values);
    };
  }

  void PushAllParts(int worker, int64_t attempt, int64_t step, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int> parts(kParts);
    std::iota(parts.begin(), parts.end(), 0);
    parts.push_back(static_cast<int>(random() % kParts));  // once more
    std::shuffle(parts.begin(), parts.end(), random);
    for (int part : parts) {
      absl::Status pushed = absl::UnavailableError("not tried");
      while (absl::IsUnavailable(pushed)) {  // attempt 2 has yet to begin
        pushed =
            shard_.AddPush(++tickets_, PushFor(worker, attempt, part, 1, step))
                .status();
      }
      EXPECT_OK(pushed);
    }
  }
  // All at once; an attempt that is superseded on the way may be half done.
  void PushFrom(const std::vector<int>& members, int64_t attempt,
                int64_t step) {
    std::vector<std::thread> threads;
    for (int worker : members) {
      const auto seed = static_cast<uint32_t>(1000 * step + worker);
      threads.emplace_back(
          [=, this] { PushAllParts(worker, attempt, step, seed); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  server::FakePartUpdater updater_{kParts};
  server::StrictEngine shard_{{kMembers, kWorkers}, updater_};
  std::atomic<uint64_t> tickets_ = 0;
  std::vector<std::vector<std::vector<float>>> values_;  // by step, by part
};

TEST_F(ManyThreadsTest, EveryCommittedStepHoldsExactlyItsSet) {
  for (int64_t step = 0; step < kSteps; ++step) {
    // The set of attempt 1 loses worker `dead`, while its pushes are under way.
    const int dead = static_cast<int>(step % kMembers);
    std::vector<int> second = {0, 1, 2, 3};
    second.erase(second.begin() + dead);
    std::thread first([&] { PushFrom({0, 1, 2}, 1, step); });
    std::thread chief([&] { shard_.StartAttempt(step, 2); });
    PushFrom(second, 2, step);
    first.join();
    chief.join();

    ASSERT_OK(shard_.Commit(step + 1, 2)) << shard_.WaitsFor();
    ASSERT_EQ(static_cast<int64_t>(values_.size()), step + 1);
    std::vector<float> set;
    for (int worker : second)
      set.push_back(static_cast<float>(100 * worker + 2));
    EXPECT_THAT(values_.back(), Each(set));
  }
  EXPECT_FALSE(updater_.overlapped());
}

}  // namespace
}  // namespace lockstep
