#include "strategy/input/dataset.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/strategy/input/number_streams_harness.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;
using Row = std::vector<int64_t>;

std::vector<Row> Read(const Dataset& dataset) {
  return NumbersOf(**dataset.Open());
}

const auto kSame = [](Element element) -> absl::StatusOr<Element> {
  return element;
};

TEST(DatasetTest, StepsApplyInTheirOrderAndLeaveTheSetBeforeThem) {
  const Dataset numbers = Dataset::Range(10);
  const Dataset shard = numbers.Shard(2, 1).Skip(1).Take(3);
  EXPECT_THAT(Read(shard), ElementsAre(Row{3}, Row{5}, Row{7}));
  EXPECT_THAT(Read(shard.Batch(2).Repeat(2)),
              ElementsAre(Row{3, 5}, Row{7}, Row{3, 5}, Row{7}));
  EXPECT_EQ(Read(numbers).size(), 10u);
  EXPECT_THAT(
      Read(numbers.Filter([](const Element& element) -> absl::StatusOr<bool> {
        return element[0].Elements<int64_t>()[0] > 7;
      })),
      ElementsAre(Row{8}, Row{9}));
}

TEST(DatasetTest, ABatchSizeIsKnownAsLongAsNoStepMayChangeIt) {
  const Dataset kept = Dataset::Range(9).Batch(4);
  EXPECT_EQ(kept.Repeat().Prefetch(2).Take(1).Skip(0).BatchSize(), 4);
  EXPECT_EQ(kept.Map(kSame).BatchSize(), std::nullopt);
  const Dataset dropped = Dataset::Range(9).Batch(4, true);
  EXPECT_EQ(dropped.Map(kSame).BatchSize(), 4);
  EXPECT_EQ(dropped.MapBatches(kSame).BatchSize(), std::nullopt);
  EXPECT_EQ(Dataset::Range(9).BatchSize(), std::nullopt);
  EXPECT_FALSE(kept.HasStaticShapes());
  EXPECT_TRUE(dropped.Map(kSame).HasStaticShapes());
  EXPECT_FALSE(dropped.MapBatches(kSame).HasStaticShapes());
  EXPECT_TRUE(kept.IsBatched());
}

TEST(DatasetTest, ImpossibleArgumentsAreReportedOnOpening) {
  const auto invalid = [](const Dataset& dataset, const char* message) {
    EXPECT_THAT(dataset.Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr(message)));
  };
  invalid(Dataset::Range(3).Batch(0), "batch is 0");
  invalid(Dataset::Range(3).Shard(2, 2), "shards is 2");
  invalid(Dataset::Range(3).Shard(2, INT64_MAX), "shards is 2");
  invalid(Dataset::Range(3).Batch(0).Repeat().Take(2), "batch is 0");
  const auto same = [](Element element) -> absl::StatusOr<Element> {
    return element;
  };
  // Two steps before the one that opens with its first element.
  invalid(Dataset::Range(3).Batch(0).Map(same).Repeat(), "batch is 0");
  invalid(Dataset::Range(-1), "elements is -1");
}

std::vector<int64_t> ShapeOfLike(const Dataset& dataset) {
  return dataset.Like().value().at(0).shape();
}

TEST(DatasetTest, AMissingFunctionIsReportedAndNotCalled) {
  const Dataset numbers = Dataset::Range(3);
  for (const Dataset& data :
       {Dataset::Counted(3, nullptr), numbers.Map(nullptr),
        numbers.MapBatches(nullptr), numbers.Filter(nullptr),
        Dataset::FromFiles({"a"}, nullptr)}) {
    EXPECT_THAT(data.Check(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("is null")));
    static_cast<void>(data.Like());  // calls no function that is missing
  }
}

TEST(DatasetTest, FilesAreSharedOutAmongWorkersThatExist) {
  const Dataset files = Dataset::FromFiles({"a", "b"}, nullptr);
  EXPECT_TRUE(files.ReadsFiles());
  for (const auto& [count, index] :
       {std::pair<int, int>(0, 0), {-1, 0}, {2, 2}, {2, -1}}) {
    EXPECT_THAT(files.ShardFiles(count, index).status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(DatasetTest, DimensionsThatMayDifferAreZeroInLike) {
  const Dataset numbers = Dataset::Range(0);
  EXPECT_THAT(ShapeOfLike(numbers), IsEmpty());
  EXPECT_THAT(ShapeOfLike(numbers.Batch(3)), ElementsAre(0));
  EXPECT_THAT(ShapeOfLike(numbers.Batch(3, true).Skip(1).Repeat()),
              ElementsAre(3));
  EXPECT_THAT(ShapeOfLike(numbers.Batch(3, true).MapBatches(kSame)),
              ElementsAre(0));
  EXPECT_THAT(ShapeOfLike(numbers.Batch(2).Batch(2)), ElementsAre(0, 0));
  EXPECT_THAT(ShapeOfLike(numbers.Batch(2, true).Batch(4)), ElementsAre(0, 2));
}

TEST(DatasetTest, LikeIsWhatAFunctionMakesOfIt) {
  const Dataset pairs = Dataset::Range(0).Batch(2).Map(
      [](Element element) -> absl::StatusOr<Element> {
        element.push_back(
            *Value::Zeros(ElementType::kFloat32, {element[0].shape()[0], 5}));
        return element;
      });
  const std::optional<Element> like = pairs.Like();
  ASSERT_THAT(like, Optional(SizeIs(2)));
  EXPECT_THAT((*like)[1].shape(), ElementsAre(0, 5));
  EXPECT_EQ((*like)[1].type(), ElementType::kFloat32);

  const Dataset refused =
      Dataset::Range(3).Map([](Element) -> absl::StatusOr<Element> {
        return absl::InvalidArgumentError("takes no zeros");
      });
  EXPECT_FALSE(refused.Like().has_value());
}

// The thread of a prefetch may be in a function meanwhile.
TEST(DatasetTest, LikeCallsNoFunctionThatAnotherThreadIsIn) {
  std::atomic<bool> inside = false;
  std::atomic<bool> overlaps = false;
  const auto alone = [&](Element element) -> absl::StatusOr<Element> {
    if (inside.exchange(true)) overlaps = true;
    std::this_thread::yield();
    inside = false;
    return element;
  };
  const auto make = [&](int64_t i) {
    return alone({Value::Of<int64_t>(ElementType::kInt64, {}, {i})});
  };
  for (const Dataset& dataset :
       {Dataset::Counted(2000, make), Dataset::Range(2000).Map(alone),
        Dataset::Range(2000).Batch(1).MapBatches(alone)}) {
    auto stream = *dataset.Prefetch(2000).Open();
    for (int i = 0; i < 2000; ++i) {
      ASSERT_THAT(stream->Next(), IsOk());
      EXPECT_TRUE(dataset.Like().has_value());
    }
  }
  EXPECT_FALSE(overlaps);
}

TEST(DatasetTest, LikeIsUnknownForASourceWithoutElements) {
  const auto make = [](int64_t) -> absl::StatusOr<Element> {
    return Element{*Value::Zeros(ElementType::kFloat32, {7})};
  };
  EXPECT_FALSE(Dataset::Counted(0, make).Batch(2).Like().has_value());
  EXPECT_THAT(ShapeOfLike(Dataset::Counted(1, make)), ElementsAre(7));
  EXPECT_THAT(ShapeOfLike(Dataset::Counted(0, make, *make(0)).Batch(2)),
              ElementsAre(0, 7));
  const auto open = [](const std::string&) { return NumberStream(1, 0); };
  EXPECT_FALSE(Dataset::FromFiles({"0"}, open).Like().has_value());
  const Dataset files = Dataset::FromFiles({"0", "1"}, open, 1, *make(0));
  EXPECT_THAT(ShapeOfLike(files), ElementsAre(7));
  EXPECT_THAT(ShapeOfLike(files.ShardFiles(2, 1).value()), ElementsAre(7));
}

TEST(DatasetTest, FilesAreSharedOut) {
  const Dataset files = Dataset::FromFiles(
      {"0", "1", "2"}, [](const std::string& name) -> StreamOr {
        return NumberStream(1, std::stol(name));
      });
  EXPECT_TRUE(files.ReadsFiles());
  EXPECT_THAT(Read(files.Batch(9).ShardFiles(2, 0).value()),
              ElementsAre(Row{0, 2}));
  const auto four = files.ShardFiles(4, 0);
  ASSERT_THAT(four, IsOk());
  EXPECT_THAT((*four->Open())->Next(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("3 files for 4 workers")));
  EXPECT_THAT(Dataset::Range(3).ShardFiles(2, 0),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("kData")));
}

}  // namespace
}  // namespace lockstep::strategy
