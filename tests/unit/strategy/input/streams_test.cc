#include "strategy/input/streams.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/process/forbid_threads.h"
#include "tests/unit/strategy/input/number_streams_harness.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Row = std::vector<int64_t>;

TEST(StreamsTest, BatchesKeepOrDropTheRemainder) {
  EXPECT_THAT(NumbersOf(*BatchStream(NumberStream(5), 2, false)),
              ElementsAre(Row{0, 1}, Row{2, 3}, Row{4}));
  EXPECT_THAT(NumbersOf(*BatchStream(NumberStream(5), 2, true)),
              ElementsAre(Row{0, 1}, Row{2, 3}));
}

TEST(StreamsTest, RepeatBeginsAgain) {
  const Opener open = []() -> StreamOr { return NumberStream(2); };
  EXPECT_THAT(NumbersOf(*RepeatStream(open, 2)),
              ElementsAre(Row{0}, Row{1}, Row{0}, Row{1}));
  EXPECT_THAT(NumbersOf(*RepeatStream(open, std::nullopt), 3),
              ElementsAre(Row{0}, Row{1}, Row{0}));
  EXPECT_THAT(NumbersOf(*RepeatStream(open, 0)), IsEmpty());
}

TEST(StreamsTest, NothingRepeatedForEverEnds) {
  const Opener open = []() -> StreamOr { return NumberStream(0); };
  EXPECT_THAT(NumbersOf(*RepeatStream(open, std::nullopt)), IsEmpty());
}

TEST(StreamsTest, ASelectionTakesEachOfSo) {
  EXPECT_THAT(NumbersOf(*SelectStream(NumberStream(7), 1, 3, std::nullopt)),
              ElementsAre(Row{1}, Row{4}));
  EXPECT_THAT(NumbersOf(*SelectStream(NumberStream(7), 0, 1, 2)),
              ElementsAre(Row{0}, Row{1}));
}

TEST(StreamsTest, FilesTakeTurnsAndTheNextOpensARoundLater) {
  const FileOpener open = [](const std::string& file) -> StreamOr {
    return file == "a" ? NumberStream(1, 10)
                       : NumberStream(3, file == "b" ? 20 : 30);
  };
  EXPECT_THAT(NumbersOf(*FileStream({"a", "b", "c"}, open, 2)),
              ElementsAre(Row{10}, Row{20}, Row{21}, Row{30}, Row{22}, Row{31},
                          Row{32}));
  EXPECT_THAT(NumbersOf(*FileStream({"a", "b"}, open, 1)),
              ElementsAre(Row{10}, Row{20}, Row{21}, Row{22}));
}

TEST(StreamsTest, PrefetchedElementsComeInOrderAndTheEndStays) {
  const auto stream = PrefetchStream(NumberStream(50), 3);
  const auto numbers = NumbersOf(*stream);
  ASSERT_EQ(numbers.size(), 50u);
  EXPECT_EQ(numbers[49], Row{49});
  EXPECT_FALSE(stream->Next()->has_value());
}

TEST(StreamsTest, APrefetchWithoutAThreadReadsTheSameElements) {
  constexpr int kCode = 77;
  const std::vector<Row> both = {{0}, {1}};
  EXPECT_EXIT(
      {
        ForbidThreads();
        const auto stream = PrefetchStream(NumberStream(2), 3);
        const bool same = NumbersOf(*stream) == both;
        const bool ended = !stream->Next()->has_value();
        _exit(same && ended ? kCode : 1);
      },
      ::testing::ExitedWithCode(kCode), "");
}

TEST(StreamsTest, AnAbandonedPrefetchEndsItsThread) {
  const auto stream = PrefetchStream(
      RepeatStream([]() -> StreamOr { return NumberStream(2); }, std::nullopt),
      2);
  EXPECT_TRUE(stream->Next()->has_value());
}

TEST(StreamsTest, AnErrorReachesTheReader) {
  const auto stream = PrefetchStream(
      ChangeStream(NumberStream(3),
                   [](Element) -> absl::StatusOr<std::optional<Element>> {
                     return absl::DataLossError("torn");
                   }),
      2);
  EXPECT_THAT(stream->Next(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(stream->Next(), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace lockstep::strategy
