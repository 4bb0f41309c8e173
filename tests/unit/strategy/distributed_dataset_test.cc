#include "strategy/distributed_dataset.h"

#include <atomic>
#include <chrono>

#include "common/base/mutex.h"
#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Row = std::vector<int64_t>;

class DistributedDatasetTest : public TwoReplicas {
 protected:
  static std::vector<Row> RowsOf(const PerReplica<Element>& step) {
    std::vector<Row> rows;
    for (const Element& piece : step.local()) {
      rows.push_back(piece[0].Elements<int64_t>());
    }
    return rows;
  }
};

TEST_F(DistributedDatasetTest, AStepGivesEachReplicaItsPiece) {
  auto data = strategy_->Distribute(Dataset::Range(5).Batch(2)).value();
  EXPECT_THAT(RowsOf(*data.Next()), ElementsAre(Row{0}, Row{1}));
  EXPECT_THAT(RowsOf(*data.Next()), ElementsAre(Row{2}, Row{3}));
  EXPECT_THAT(RowsOf(*data.Next()), ElementsAre(Row{4}, Row{}));
  EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(data.Next(), StatusIs(absl::StatusCode::kOutOfRange));
  data.Restart();
  EXPECT_THAT(RowsOf(*data.Next()), ElementsAre(Row{0}, Row{1}));
}

// Case 37.
TEST_F(DistributedDatasetTest, AShortStepOfBatchesOfOneSizeIsLeftOut) {
  const auto make = [](bool drop) {
    return [drop](const InputContext& context) -> absl::StatusOr<Dataset> {
      EXPECT_EQ(context.num_replicas_in_sync, 2);
      return Dataset::Range(6).Batch(2, drop);
    };
  };
  auto kept = strategy_->DistributeFrom(make(false)).value();
  EXPECT_THAT(kept.Next(), IsOk());
  EXPECT_THAT(RowsOf(*kept.Next()), ElementsAre(Row{4, 5}, IsEmpty()));
  auto dropped = strategy_->DistributeFrom(make(true)).value();
  EXPECT_THAT(dropped.Next(), IsOk());
  EXPECT_THAT(dropped.Next(), StatusIs(absl::StatusCode::kOutOfRange));
  dropped.Restart();
  EXPECT_TRUE(dropped.NextIfAny()->has_value());
  EXPECT_TRUE(dropped.NextIfAny()->has_value());
  EXPECT_FALSE(dropped.NextIfAny()->has_value());
}

TEST_F(DistributedDatasetTest, ElementsThatCannotBeDividedNeedAPieceForEach) {
  auto numbers =
      strategy_
          ->DistributeFrom([](const InputContext&) -> absl::StatusOr<Dataset> {
            return Dataset::Range(5);
          })
          .value();
  EXPECT_THAT(RowsOf(*numbers.Next()), ElementsAre(Row{0}, Row{1}));
  EXPECT_THAT(RowsOf(*numbers.Next()), ElementsAre(Row{2}, Row{3}));
  EXPECT_THAT(numbers.Next(), StatusIs(absl::StatusCode::kOutOfRange));
  numbers.Restart();
  EXPECT_TRUE(numbers.NextIfAny()->has_value());
  EXPECT_TRUE(numbers.NextIfAny()->has_value());
  EXPECT_THAT(RowsOf(**numbers.NextIfAny()), ElementsAre(Row{4}, Row{0}));
}

TEST_F(DistributedDatasetTest, APieceOfNoExamplesHasNoSizeThatIsUnknown) {
  auto data = strategy_
                  ->Distribute(Dataset::Range(5).Batch(2).Batch(2),
                               {.auto_shard = AutoShardPolicy::kOff})
                  .value();
  EXPECT_THAT(data.Next(), IsOk());
  const auto last = data.Next();
  ASSERT_THAT(last, IsOk());
  EXPECT_THAT(last->local()[0][0].shape(), ElementsAre(1, 1));
  EXPECT_THAT(last->local()[1][0].shape(), ElementsAre(0, 0));
}

// A group that another worker has left.
class LeftGroup final : public Collective {
 public:
  int rank() const override { return 0; }
  int members() const override { return 2; }
  absl::StatusOr<std::vector<Parcel>> Exchange(const std::string&,
                                               std::vector<Leaf>) override {
    return absl::AbortedError("rank 1 has left the group");
  }
};

TEST_F(DistributedDatasetTest, TheErrorOfTheDataIsNotLostInThatOfTheGroup) {
  auto strategy = Strategy::Make({Kind::kMultiWorkerMirrored, 1, {}},
                                 std::make_unique<LeftGroup>())
                      .value();
  const auto next = [&](const absl::Status& read) {
    const auto make = [&](const InputContext&) -> absl::StatusOr<Dataset> {
      return Dataset::Range(2).Batch(1).Map(
          [read](Element element) -> absl::StatusOr<Element> {
            if (!read.ok()) return read;
            return element;
          });
    };
    return strategy->DistributeFrom(make).value().Next().status();
  };
  EXPECT_THAT(next(absl::OkStatus()), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(next(absl::DataLossError("torn")),
              StatusIs(absl::StatusCode::kDataLoss));
}

// Counts the pieces that a data set has made.
class PieceCounter {
 public:
  DatasetFunction Pieces() {
    return [this](const InputContext&) -> absl::StatusOr<Dataset> {
      return Dataset::Counted(
          100, [this](int64_t i) -> absl::StatusOr<Element> {
            MutexLock lock(mutex_);
            ++made_;
            changed_.SignalAll();
            return Element{Value::Of<int64_t>(ElementType::kInt64, {1}, {i})};
          });
    };
  }
  int made() {
    MutexLock lock(mutex_);
    return made_;
  }
  // False if a minute passes without one more.
  bool WaitFor(int number) {
    MutexLock lock(mutex_);
    while (made_ < number) {
      if (!changed_.WaitFor(mutex_, std::chrono::minutes(1))) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int made_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(DistributedDatasetTest, PiecesAreReadAheadForEachReplica) {
  for (const int prefetch : {0, 1, 3}) {
    PieceCounter counter;
    {
      InputOptions options;
      options.prefetch = prefetch;
      auto data = strategy_->DistributeFrom(counter.Pieces(), options).value();
      EXPECT_EQ(counter.made(), 0) << "nothing is read before the first step";
      EXPECT_THAT(RowsOf(*data.Next()), ElementsAre(Row{0}, Row{1}));
      // The step has a piece for each of two replicas.
      EXPECT_TRUE(counter.WaitFor(2 + 2 * prefetch)) << prefetch;
    }
    // The thread, which has ended, may have held a piece without room for it.
    EXPECT_LE(counter.made(), 2 + 2 * prefetch + (prefetch == 0 ? 0 : 1));
  }
}

TEST_F(DistributedDatasetTest, DistributionAloneReadsNothing) {
  std::atomic<int> made = 0;
  const auto number = [&](int64_t i) -> absl::StatusOr<Element> {
    ++made;
    return Element{Value::Of<int64_t>(ElementType::kInt64, {}, {i})};
  };
  const Dataset numbers = Dataset::Counted(8, number).Batch(2).Prefetch(2);
  for (const auto policy : {AutoShardPolicy::kOff, AutoShardPolicy::kData}) {
    InputOptions options;
    options.auto_shard = policy;
    auto data = strategy_->Distribute(numbers, options);
    ASSERT_TRUE(data.ok()) << data.status();
  }
  EXPECT_EQ(made, 0);
}

TEST_F(DistributedDatasetTest, AReplicaCannotTakeAStep) {
  auto data = strategy_->Distribute(Dataset::Range(4).Batch(2)).value();
  const auto taken = strategy_->Run(
      [&](Replica&) -> absl::Status { return data.Next().status(); });
  EXPECT_EQ(taken.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(RowsOf(*data.Next()), ElementsAre(Row{0}, Row{1}));
}

TEST_F(DistributedDatasetTest, ImpossibleOptionsAreRefused) {
  InputOptions options;
  options.replication = Replication::kPerReplica;
  EXPECT_THAT(strategy_->Distribute(Dataset::Range(5).Batch(2), options),
              StatusIs(absl::StatusCode::kUnimplemented));
  options = {};
  options.prefetch = -1;
  EXPECT_THAT(strategy_->Distribute(Dataset::Range(5).Batch(2), options),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(strategy_->DistributeFrom(nullptr, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(strategy_->Distribute(Dataset::Range(5).Batch(0)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::strategy
