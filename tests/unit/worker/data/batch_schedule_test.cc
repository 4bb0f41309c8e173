#include "worker/data/batch_schedule.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 23 examples over two workers: three batches of three each, five left out.
BatchSchedule::Options TwoWorkers(int64_t worker) {
  BatchSchedule::Options options;
  options.num_examples = 23;
  options.batch_size = 3;
  options.num_workers = 2;
  options.worker = worker;
  options.seed = 42;
  return options;
}

BatchSchedule Make(const BatchSchedule::Options& options) {
  absl::StatusOr<BatchSchedule> schedule = BatchSchedule::Create(options);
  EXPECT_OK(schedule);
  return *std::move(schedule);
}

std::vector<int64_t> Ids(BatchSchedule& schedule, int64_t index) {
  absl::StatusOr<std::vector<int64_t>> ids = schedule.Batch(index);
  EXPECT_OK(ids);
  return ids.ok() ? *ids : std::vector<int64_t>();
}

// Returns the number of batches until the end of the only epoch.
int64_t BatchesPerEpoch(BatchSchedule::Options options) {
  options.epochs = 1;
  const BatchSchedule schedule = Make(options);
  int64_t batches = 0;
  while (schedule.Check(batches).ok()) ++batches;
  EXPECT_THAT(schedule.Check(batches), StatusIs(absl::StatusCode::kOutOfRange));
  return batches;
}

TEST(BatchScheduleTest, SameSeedAndWorkersGiveTheseBatchesOnEveryMachine) {
  BatchSchedule first = Make(TwoWorkers(0));
  BatchSchedule second = Make(TwoWorkers(1));

  EXPECT_THAT(first.Batch(0), IsOkAndHolds(ElementsAre(6, 14, 7)));
  EXPECT_THAT(first.Batch(1), IsOkAndHolds(ElementsAre(12, 18, 4)));
  EXPECT_THAT(first.Batch(2), IsOkAndHolds(ElementsAre(21, 8, 9)));
  EXPECT_THAT(first.Batch(3), IsOkAndHolds(ElementsAre(14, 10, 4)));
  EXPECT_THAT(second.Batch(0), IsOkAndHolds(ElementsAre(1, 20, 3)));
  EXPECT_THAT(second.Batch(1), IsOkAndHolds(ElementsAre(17, 0, 15)));
  EXPECT_THAT(second.Batch(2), IsOkAndHolds(ElementsAre(19, 13, 5)));
  EXPECT_THAT(second.Batch(3), IsOkAndHolds(ElementsAre(19, 5, 2)));
}

TEST(BatchScheduleTest, RestartedWorkerGoesOnWithTheBatchItWouldHaveHad) {
  BatchSchedule undisturbed = Make(TwoWorkers(1));
  for (int64_t index = 0; index < 20; ++index) {
    const std::vector<int64_t> expected = Ids(undisturbed, index);

    BatchSchedule restarted = Make(TwoWorkers(1));

    EXPECT_EQ(Ids(restarted, index), expected) << index;
  }
}

TEST(BatchScheduleTest, OrderOfRequestsDoesNotMatter) {
  BatchSchedule schedule = Make(TwoWorkers(0));
  EXPECT_OK(schedule.Batch(1000001));

  EXPECT_THAT(schedule.Batch(3), IsOkAndHolds(ElementsAre(14, 10, 4)));
  EXPECT_THAT(schedule.Batch(0), IsOkAndHolds(ElementsAre(6, 14, 7)));
  EXPECT_THAT(schedule.Batch(1000001), IsOkAndHolds(ElementsAre(3, 2, 16)));
}

// A billion examples: no list of them is made.
TEST(BatchScheduleTest, LargeSetsAreOrderedWithoutAList) {
  std::set<int64_t> seen;
  for (int64_t worker = 0; worker < 3; ++worker) {
    auto schedule = BatchSchedule::Create({.num_examples = 1'000'000'000,
                                           .batch_size = 100,
                                           .num_workers = 3,
                                           .worker = worker});
    ASSERT_OK(schedule);
    for (const int64_t index : {0, 1, 3'333'332}) {
      const auto batch = schedule->Batch(index);
      ASSERT_OK(batch);
      seen.insert(batch->begin(), batch->end());
    }
  }
  EXPECT_EQ(seen.size(), 900u);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 1'000'000'000);
}

TEST(BatchScheduleTest, WorkersNeverShareAnExampleWithinAnEpoch) {
  BatchSchedule::Options options;
  options.num_examples = 100;
  options.batch_size = 4;
  options.num_workers = 5;
  std::multiset<int64_t> seen;

  for (options.worker = 0; options.worker < 5; ++options.worker) {
    BatchSchedule schedule = Make(options);
    ASSERT_EQ(BatchesPerEpoch(options), 5);
    for (int64_t index = 0; index < 5; ++index) {
      for (int64_t id : Ids(schedule, index)) seen.insert(id);
    }
  }

  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 100u);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 99);
}

TEST(BatchScheduleTest, ExamplesThatFillNoBatchAreLeftOut) {
  EXPECT_EQ(BatchesPerEpoch(TwoWorkers(0)), 3);
  EXPECT_EQ(BatchesPerEpoch(TwoWorkers(1)), 3);
}

TEST(BatchScheduleTest, OneBatchPerEpochIsEnough) {
  BatchSchedule::Options options = TwoWorkers(1);
  options.batch_size = 11;

  BatchSchedule schedule = Make(options);

  EXPECT_EQ(BatchesPerEpoch(options), 1);
  EXPECT_EQ(Ids(schedule, 7).size(), 11u);
}

TEST(BatchScheduleTest, InputEndsAfterTheLastEpoch) {
  BatchSchedule::Options options = TwoWorkers(0);
  options.epochs = 2;
  BatchSchedule schedule = Make(options);

  EXPECT_OK(schedule.Batch(5));
  EXPECT_THAT(schedule.Batch(6),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("end of input"), HasSubstr("epoch 2"))));
  EXPECT_OK(schedule.Batch(0));
}

TEST(BatchScheduleTest, WithoutEpochsInputNeverEnds) {
  BatchSchedule schedule = Make(TwoWorkers(0));

  EXPECT_OK(schedule.Batch(INT64_MAX));
}

TEST(BatchScheduleTest, NegativeIndexIsRefused) {
  BatchSchedule schedule = Make(TwoWorkers(0));

  EXPECT_THAT(schedule.Batch(-1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
}

TEST(BatchScheduleTest, BatchThatNoWorkerCanFillIsRefused) {
  BatchSchedule::Options options = TwoWorkers(0);
  options.batch_size = 12;

  EXPECT_THAT(
      BatchSchedule::Create(options),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("batch_size is 12"), HasSubstr("23 examples"),
                     HasSubstr("2 workers"), HasSubstr("11 each"))));
}

TEST(BatchScheduleTest, HugeSizesAreRefusedWithoutOverflow) {
  BatchSchedule::Options options = TwoWorkers(0);
  options.batch_size = INT64_MAX;
  options.num_workers = INT64_MAX;

  EXPECT_THAT(BatchSchedule::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// One option outside its range, and what the refusal has to name.
struct BadOption {
  const char* name;
  void (*spoil)(BatchSchedule::Options&);
};

TEST(BatchScheduleTest, OptionsOutsideTheirRangeAreNamed) {
  const BadOption cases[] = {
      {"num_examples is 0", [](auto& options) { options.num_examples = 0; }},
      {"batch_size is 0", [](auto& options) { options.batch_size = 0; }},
      {"num_workers is -1", [](auto& options) { options.num_workers = -1; }},
      {"worker is 2", [](auto& options) { options.worker = 2; }},
      {"worker is -1", [](auto& options) { options.worker = -1; }},
      {"epochs is -1", [](auto& options) { options.epochs = -1; }},
  };
  for (const BadOption& bad : cases) {
    BatchSchedule::Options options = TwoWorkers(0);
    bad.spoil(options);

    EXPECT_THAT(
        BatchSchedule::Create(options),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.name)));
  }
}

TEST(BatchScheduleTest, SharedWorkHasOneScheduleOfMicroBatches) {
  JobConfig job;
  job.batch_size = 12;
  job.seed = 3;
  const BatchSchedule::Options own = ScheduleOf(job, 100, 1, 2);
  EXPECT_EQ(own.batch_size, 12);
  EXPECT_EQ(own.num_workers, 2);
  EXPECT_EQ(own.worker, 1);
  job.work = Work::kShared;
  job.micro_batches_per_step = 4;

  for (const int worker : {0, 1}) {
    const BatchSchedule::Options shared = ScheduleOf(job, 100, worker, 2);
    EXPECT_EQ(shared.batch_size, 3);
    EXPECT_EQ(shared.num_workers, 1);
    EXPECT_EQ(shared.worker, 0);
    EXPECT_EQ(shared.seed, 3u);
    EXPECT_EQ(shared.num_examples, 100);
  }
}

}  // namespace
}  // namespace lockstep::worker
