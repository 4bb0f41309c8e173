#include "server/step/engine.h"

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::byte kA{1};
constexpr std::byte kBc[] = {std::byte{2}, std::byte{3}};

TEST(ContiguousTest, OneSliceIsNotCopied) {
  std::vector<std::byte> scratch;

  const auto bytes = Contiguous({{{kBc, 2}}}, scratch);

  EXPECT_EQ(bytes.data(), kBc);
  EXPECT_EQ(bytes.size(), 2u);
  EXPECT_THAT(scratch, IsEmpty());
}

TEST(ContiguousTest, SlicesAreJoinedInPlaceOfAnEarlierGradient) {
  std::vector<std::byte> scratch;
  Contiguous({{{&kA, 1}, {kBc, 2}}}, scratch);

  EXPECT_THAT(Contiguous({{{kBc, 2}, {&kA, 1}}}, scratch),
              ElementsAre(kBc[0], kBc[1], kA));
}

TEST(ContiguousTest, AGradientWithoutSlicesIsEmpty) {
  std::vector<std::byte> scratch(1);

  EXPECT_THAT(Contiguous({}, scratch), IsEmpty());
}

TEST(CheckPartRangeTest, PartsMustBeAmongThoseOfTheServer) {
  EXPECT_OK(CheckPartRange(0, 3, 3));
  EXPECT_OK(CheckPartRange(2, 1, 3));
  constexpr int kLast = std::numeric_limits<int>::max();
  for (const auto& [first, count] : std::vector<std::pair<int, int64_t>>{
           {-1, 1}, {0, 0}, {3, 1}, {0, 4}, {kLast, 1}, {kLast, kLast}}) {
    EXPECT_THAT(CheckPartRange(first, count, 3),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("among the 3 parts")))
        << first << ", " << count;
  }
}

TEST(ShardAnswersTest, AppendedAnswersComeAfterThoseThatWereThere) {
  ShardAnswers answers;
  answers.pushes.push_back({1, {PushOutcome::kAccepted}, 5, {}});
  answers.takes.push_back({2, true, 1, {}});
  ShardAnswers more;
  more.pushes.push_back({3, {PushOutcome::kStale}, 6, {}});
  more.pushes.push_back({4, {}, 6, absl::InternalError("why")});
  more.takes.push_back({5, false, 0, {}});

  answers.Append(std::move(more));

  EXPECT_THAT(answers.pushes, ElementsAre(Field(&PushAnswer::ticket, 1),
                                          Field(&PushAnswer::ticket, 3),
                                          Field(&PushAnswer::ticket, 4)));
  EXPECT_THAT(answers.pushes[1].outcomes, ElementsAre(PushOutcome::kStale));
  EXPECT_EQ(answers.pushes[2].status, absl::InternalError("why"));
  EXPECT_THAT(answers.takes, ElementsAre(Field(&TakeAnswer::ticket, 2),
                                         Field(&TakeAnswer::ticket, 5)));
}

TEST(ShardAnswersTest, AppendingNothingChangesNothing) {
  ShardAnswers answers;
  answers.takes.push_back({2, true, 1, {}});

  answers.Append(ShardAnswers());

  EXPECT_TRUE(answers.pushes.empty());
  EXPECT_THAT(answers.takes, ElementsAre(Field(&TakeAnswer::ticket, 2)));
}

}  // namespace
}  // namespace lockstep::server
