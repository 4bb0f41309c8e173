#include "strategy/distributed_dataset.h"

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

TEST_F(DistributedDatasetTest, ImpossibleOptionsAreRefused) {
  InputOptions options;
  options.replication = Replication::kPerReplica;
  EXPECT_THAT(strategy_->Distribute(Dataset::Range(5).Batch(2), options),
              StatusIs(absl::StatusCode::kUnimplemented));
  options = {};
  options.prefetch = -1;
  EXPECT_THAT(strategy_->Distribute(Dataset::Range(5).Batch(2), options),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::strategy
