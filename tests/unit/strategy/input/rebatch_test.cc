#include "strategy/input/rebatch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/strategy/input/number_streams_harness.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;
using Row = std::vector<int64_t>;

std::vector<Row> Pieces(const Dataset& dataset, AutoShardPolicy policy,
                        const InputContext& context) {
  return NumbersOf(**OpenPieces(dataset, policy, context));
}

// Cases 27 and 28 of the conformance list.
TEST(RebatchTest, SizesAddUpToTheGlobalBatchAndRotate) {
  EXPECT_THAT(BatchSizesForWorker(7, 2, 2, 0),
              IsOkAndHolds(ElementsAre(2, 2, 2, 1)));
  EXPECT_THAT(BatchSizesForWorker(7, 2, 2, 1),
              IsOkAndHolds(ElementsAre(2, 1, 2, 2)));
  EXPECT_THAT(BatchSizesForWorker(10, 3, 1, 0),
              IsOkAndHolds(ElementsAre(4, 3, 3)));
  EXPECT_THAT(BatchSizesForWorker(10, 3, 1, 1),
              IsOkAndHolds(ElementsAre(3, 3, 4)));
  EXPECT_THAT(BatchSizesForWorker(10, 3, 1, 2),
              IsOkAndHolds(ElementsAre(3, 4, 3)));
}

// Case 29.
TEST(RebatchTest, ReplicasMustDivideTheGlobalBatch) {
  EXPECT_THAT((InputContext{1, 0, 2}.PerReplicaBatchSize(10)), IsOkAndHolds(5));
  EXPECT_THAT(
      (InputContext{1, 0, 3}.PerReplicaBatchSize(10)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiple of 3")));
}

TEST(RebatchTest, ImpossibleNumbersOfWorkersAreRefused) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(BatchSizesForWorker(8, 0, 1, 0).status(), refused);
  EXPECT_THAT(BatchSizesForWorker(8, 1, 0, 0).status(), refused);
  EXPECT_THAT(BatchSizesForWorker(8, 2, 1, 2).status(), refused);
  EXPECT_THAT(BatchSizesForWorker(8, 2, 1, -1).status(), refused);
  EXPECT_THAT(BatchSizesForWorker(-8, 2, 1, 0).status(), refused);
  for (const InputContext& context :
       {InputContext{1, 0, 0}, InputContext{0, 0, 1}, InputContext{2, 2, 2},
        InputContext{2, -1, 2}, InputContext{2, 0, 3}}) {
    EXPECT_THAT(context.PerReplicaBatchSize(8).status(), refused);
    EXPECT_THAT(
        OpenPieces(Dataset::Range(8).Batch(4), AutoShardPolicy::kOff, context)
            .status(),
        refused);
  }
}

TEST(RebatchTest, AKnownSizeCutsTheStreamOfExamplesAnew) {
  const Dataset data = Dataset::Range(8).Batch(5);
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kOff, {1, 0, 2}),
              ElementsAre(Row{0, 1, 2}, Row{3, 4}, Row{5, 6, 7}));
}

TEST(RebatchTest, ASizeOfZeroIsAnEmptyPieceAlsoAfterTheEnd) {
  const Dataset data = Dataset::Range(1).Batch(1);
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kOff, {2, 1, 2}),
              ElementsAre(Row{}, Row{0}, Row{}));
}

TEST(RebatchTest, ASizeOfZeroIsAPieceOfNoDataToo) {
  const Dataset data = Dataset::Range(0).Batch(1);
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kOff, {2, 0, 2}), IsEmpty());
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kOff, {2, 1, 2}),
              ElementsAre(Row{}));
}

// The elements of files, of which nothing is known before they are read.
TEST(RebatchTest, AnEmptyPieceHasTheShapeOfTheDataOrNoTensors) {
  for (const int64_t count : {0, 1}) {
    const Dataset data = Dataset::FromFiles({"0"}, [count](const std::string&) {
                           return NumberStream(count, 5);
                         }).Batch(1);
    const auto stream = *OpenPieces(data, AutoShardPolicy::kOff, {2, 1, 2});
    EXPECT_THAT(stream->Next(),
                IsOkAndHolds(Optional(SizeIs(static_cast<size_t>(count)))));
  }
}

// Case 36.
TEST(RebatchTest, AnUnknownSizeCutsEachBatchIntoEqualPieces) {
  const Dataset data = Dataset::Range(4).Batch(4).MapBatches(
      [](Element element) -> absl::StatusOr<Element> { return element; });
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kOff, {1, 0, 3}),
              ElementsAre(Row{0, 1}, Row{2, 3}, Row{}));
}

TEST(RebatchTest, WorkersTakeTurnsUnderData) {
  const Dataset data = Dataset::Range(8).Batch(4);
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kData, {2, 1, 2}),
              ElementsAre(Row{2, 3}, Row{6, 7}));
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kAuto, {2, 0, 2}),
              ElementsAre(Row{0, 1}, Row{4, 5}));
}

// As the refusal of a data set without Batch() says.
TEST(RebatchTest, ElementsThatAreBatchesAlreadyAreDivided) {
  const Dataset made = Dataset::Counted(2, [](int64_t i) {
    return absl::StatusOr<Element>(
        Element{Value::Of<int64_t>(ElementType::kInt64, {3}, {i, i, i})});
  });
  const Dataset data = made.Batch(1).MapBatches([](Element element) {
    return absl::StatusOr<Element>(Element{element[0].Reshaped({3})});
  });
  EXPECT_THAT(Pieces(data, AutoShardPolicy::kAuto, {1, 0, 2}),
              ElementsAre(Row{0, 0}, Row{0}, Row{1, 1}, Row{1}));
}

TEST(RebatchTest, DataSetThatCannotBeDividedIsRefused) {
  EXPECT_THAT(OpenPieces(Dataset::Range(4), AutoShardPolicy::kOff, {1, 0, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("has no Batch()"),
                             HasSubstr("are batches already"))));
  EXPECT_THAT(
      OpenPieces(Dataset::Range(4).Batch(2), AutoShardPolicy::kFile, {2, 0, 2}),
      StatusIs(absl::StatusCode::kNotFound));
}

TEST(RebatchTest, ASingleReplicaGetsTheElementsAsTheyAre) {
  EXPECT_THAT(Pieces(Dataset::Range(2), AutoShardPolicy::kAuto, {1, 0, 1}),
              ElementsAre(Row{0}, Row{1}));
}

}  // namespace
}  // namespace lockstep::strategy
