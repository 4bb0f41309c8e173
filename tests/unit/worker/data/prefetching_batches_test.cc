#include "worker/data/prefetching_batches.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/trace/span_recorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A batch that can be told from all others: its label is its index.
Batch Numbered(int64_t index) {
  Batch batch;
  batch.size = 1;
  batch.labels = {static_cast<int32_t>(index)};
  return batch;
}

// FakeSource records the indices it is asked for. It ends at `end`, and holds
// every call while it is closed.
//
// Threads: safe to share.
class FakeSource {
 public:
  explicit FakeSource(int64_t end = 1000000) : end_(end) {}

  BatchSource Source() {
    return [this](int64_t index) { return Make(index); };
  }

  void Close() {
    MutexLock lock(mutex_);
    open_ = false;
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.SignalAll();
  }

  // Waits until `count` calls have begun.
  void AwaitCalls(size_t count) {
    MutexLock lock(mutex_);
    while (asked_.size() < count) changed_.Wait(mutex_);
  }

  std::vector<int64_t> asked() {
    MutexLock lock(mutex_);
    return asked_;
  }

 private:
  absl::StatusOr<Batch> Make(int64_t index) {
    MutexLock lock(mutex_);
    asked_.push_back(index);
    changed_.SignalAll();
    while (!open_) changed_.Wait(mutex_);
    if (index >= end_) return absl::OutOfRangeError("end of input");
    return Numbered(index);
  }

  const int64_t end_;

  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<int64_t> asked_ ABSL_GUARDED_BY(mutex_);
};

int32_t LabelOf(const absl::StatusOr<Batch>& batch) {
  EXPECT_OK(batch);
  return batch.ok() ? batch->labels.front() : -1;
}

TEST(PrefetchingBatchesTest, BatchesComeInOrder) {
  FakeSource source;
  PrefetchingBatches batches(source.Source());

  for (int32_t index = 0; index < 1000; ++index) {
    EXPECT_EQ(LabelOf(batches.Get(index)), index);
  }
}

TEST(PrefetchingBatchesTest, SequentialAccessAsksForEachBatchOnce) {
  FakeSource source;
  PrefetchingBatches batches(source.Source(), 2);
  for (int64_t index = 0; index < 3; ++index) ASSERT_OK(batches.Get(index));

  source.AwaitCalls(5);

  EXPECT_THAT(source.asked(), ElementsAre(0, 1, 2, 3, 4));
}

TEST(PrefetchingBatchesTest, NextBatchIsMadeBeforeItIsAskedFor) {
  FakeSource source;
  PrefetchingBatches batches(source.Source(), 1);
  ASSERT_OK(batches.Get(7));

  source.AwaitCalls(2);

  EXPECT_THAT(source.asked(), ElementsAre(7, 8));
}

TEST(PrefetchingBatchesTest, NothingIsMadeBeforeTheFirstRequest) {
  FakeSource source;
  { PrefetchingBatches batches(source.Source()); }

  EXPECT_THAT(source.asked(), IsEmpty());
}

TEST(PrefetchingBatchesTest, NoMoreThanDepthBatchesWait) {
  FakeSource source;
  {
    PrefetchingBatches batches(source.Source(), 3);
    ASSERT_OK(batches.Get(0));
    source.AwaitCalls(4);
  }

  EXPECT_THAT(source.asked(), ElementsAre(0, 1, 2, 3));
}

TEST(PrefetchingBatchesTest, DepthBelowOneIsOne) {
  FakeSource source;
  {
    PrefetchingBatches batches(source.Source(), 0);
    EXPECT_EQ(LabelOf(batches.Get(0)), 0);
    source.AwaitCalls(2);
  }

  EXPECT_THAT(source.asked(), ElementsAre(0, 1));
}

TEST(PrefetchingBatchesTest, JumpDiscardsThePrefetchedBatches) {
  FakeSource source;
  PrefetchingBatches batches(source.Source(), 2);
  ASSERT_OK(batches.Get(0));
  source.AwaitCalls(3);

  EXPECT_EQ(LabelOf(batches.Get(100)), 100);
  EXPECT_EQ(LabelOf(batches.Get(101)), 101);
  EXPECT_EQ(LabelOf(batches.Get(1)), 1);
  EXPECT_EQ(LabelOf(batches.Get(1)), 1);
}

TEST(PrefetchingBatchesTest, BatchBegunBeforeAJumpIsThrownAway) {
  FakeSource source;
  PrefetchingBatches batches(source.Source(), 1);
  ASSERT_OK(batches.Get(0));
  source.AwaitCalls(2);
  source.Close();
  ASSERT_OK(batches.Get(1));
  source.AwaitCalls(3);  // batch 2 is being made, and held

  std::thread opener([&source] { source.Open(); });
  EXPECT_EQ(LabelOf(batches.Get(50)), 50);
  opener.join();

  EXPECT_EQ(LabelOf(batches.Get(51)), 51);
}

TEST(PrefetchingBatchesTest, EndOfInputComesAfterTheLastBatch) {
  FakeSource source(/*end=*/3);
  PrefetchingBatches batches(source.Source(), 4);

  for (int32_t index = 0; index < 3; ++index) {
    EXPECT_EQ(LabelOf(batches.Get(index)), index);
  }
  EXPECT_THAT(batches.Get(3), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(PrefetchingBatchesTest, NothingIsMadeBehindTheEnd) {
  FakeSource source(/*end=*/1);
  {
    PrefetchingBatches batches(source.Source(), 4);
    ASSERT_OK(batches.Get(0));
    EXPECT_THAT(batches.Get(1), StatusIs(absl::StatusCode::kOutOfRange));
  }

  EXPECT_THAT(source.asked(), ElementsAre(0, 1));
}

TEST(PrefetchingBatchesTest, RequestsBehindTheEndAreAnsweredEachTime) {
  FakeSource source(/*end=*/1);
  PrefetchingBatches batches(source.Source());

  EXPECT_THAT(batches.Get(5), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(batches.Get(5), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(batches.Get(6), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(LabelOf(batches.Get(0)), 0);
}

TEST(PrefetchingBatchesTest, IndexOutsideTheRangeIsRefusedAndChangesNothing) {
  FakeSource source;
  PrefetchingBatches batches(source.Source(), 1);
  ASSERT_OK(batches.Get(0));
  source.AwaitCalls(2);

  EXPECT_THAT(batches.Get(-1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(batches.Get(INT64_MAX),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(LabelOf(batches.Get(1)), 1);

  EXPECT_THAT(source.asked()[1], 1);
}

TEST(PrefetchingBatchesTest, DestructionWaitsForTheBatchInTheMaking) {
  FakeSource source;
  auto batches = std::make_unique<PrefetchingBatches>(source.Source(), 100000);
  ASSERT_OK(batches->Get(0));
  source.Close();

  std::thread opener([&source] { source.Open(); });
  batches.reset();
  opener.join();

  // Whatever was made, it came in order and without a gap.
  const std::vector<int64_t> asked = source.asked();
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i], static_cast<int64_t>(i));
  }
}

TEST(PrefetchingBatchesTest, OnlyAWaitForABatchIsRecorded) {
  const testing::ManualClock clock;
  SpanRecorder spans(16, clock);
  FakeSource source;
  source.Close();
  PrefetchingBatches batches(source.Source(), 2, &spans);
  std::thread opener([&source] { source.Open(); });
  ASSERT_OK(batches.Get(0));
  opener.join();
  // The first batch is never there in time.
  ASSERT_FALSE(spans.Newest(16).empty());
  EXPECT_EQ(spans.Newest(16)[0].kind, SpanKind::kReadData);
  const size_t recorded = spans.Newest(16).size();
  for (int64_t index = 1; index < 4; ++index) {
    // The batch is there when the next one is being made.
    while (source.asked().size() < static_cast<size_t>(index) + 2) {
      std::this_thread::yield();
    }
    ASSERT_OK(batches.Get(index));
  }
  EXPECT_EQ(spans.Newest(16).size(), recorded);
}

}  // namespace
}  // namespace lockstep::worker
