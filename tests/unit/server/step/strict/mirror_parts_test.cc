#include "server/step/strict/mirror_parts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(MirrorPartsTest, TellOwnPartsFromThoseOfOthers) {
  const MirrorParts parts({false, false, true});

  EXPECT_OK(parts.Check(0, 2, /*copied=*/false));
  EXPECT_OK(parts.Check(2, 1, /*copied=*/true));
  EXPECT_THAT(parts.Check(1, 2, /*copied=*/false),
              StatusIs(kInvalid, HasSubstr("part 2 is summed by another")));
  EXPECT_THAT(parts.Check(0, 1, /*copied=*/true),
              StatusIs(kInvalid, HasSubstr("part 0 is summed by this")));
}

TEST(MirrorPartsTest, PartsThatDoNotExistAreRefused) {
  const MirrorParts parts({false, true});

  for (const auto& [first, count] : std::vector<std::pair<int, int>>{
           {-1, 1}, {0, 0}, {0, -1}, {0, 3}, {2, 1}, {1, 2147483647}}) {
    EXPECT_THAT(parts.Check(first, count, false),
                StatusIs(kInvalid, HasSubstr("2 parts of this server")));
  }
}

TEST(MirrorPartsTest, WorkerWithAnOldPlanRegistersAgain) {
  const MirrorParts parts({false, true});

  EXPECT_OK(parts.CheckPush(0, 1));
  EXPECT_THAT(parts.CheckPush(0, 2),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("register again")));
  EXPECT_THAT(parts.CheckPush(1, 2), StatusIs(kInvalid));
  EXPECT_THAT(parts.CheckPush(-1, 1), StatusIs(kInvalid));
  EXPECT_OK(MirrorParts({}).CheckPush(7, 9));
}

TEST(MirrorPartsTest, WithoutMirrorsNoPartIsCopied) {
  const MirrorParts parts({});

  EXPECT_FALSE(parts.mirrored());
  EXPECT_FALSE(parts.copied(7));
}

TEST(IsAtHandTest, StepsComeBeforeAttempts) {
  const StepAttempt now = {5, 3};

  EXPECT_THAT(IsAtHand({5, 3}, now), IsOkAndHolds(true));
  EXPECT_THAT(IsAtHand({4, 9}, now), IsOkAndHolds(false));
  EXPECT_THAT(IsAtHand({5, 2}, now), IsOkAndHolds(false));
  EXPECT_THAT(IsAtHand({5, 4}, now),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("attempt 4")));
  EXPECT_THAT(IsAtHand({6, 1}, now),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("step 7")));
}

}  // namespace
}  // namespace lockstep::server
