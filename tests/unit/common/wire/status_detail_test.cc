#include "common/wire/status_detail.h"

#include "gtest/gtest.h"

namespace lockstep::testing {
namespace {

TEST(StatusDetailTest, StatusWithoutDetailHasNone) {
  const absl::Status status = absl::AbortedError("no room for more rows");

  EXPECT_EQ(CauseOf(status), FailureCause::kUnspecified);
  EXPECT_EQ(NewestIncarnationOf(status), 0);
  EXPECT_EQ(WithCause(status, FailureCause::kUnspecified), status);
  EXPECT_EQ(WithNewestIncarnation(status, 0), status);
}

TEST(StatusDetailTest, DetailStaysWithAnotherMessage) {
  const absl::Status status = WithNewestIncarnation(
      WithCause(absl::AbortedError("a"), FailureCause::kNoRoomForRows),
      uint64_t{1} << 63);

  const absl::Status renamed = WithMessage(status, "b");

  EXPECT_EQ(renamed.message(), "b");
  EXPECT_EQ(CauseOf(renamed), FailureCause::kNoRoomForRows);
  EXPECT_EQ(NewestIncarnationOf(renamed), uint64_t{1} << 63);
}

TEST(StatusDetailTest, NumberThatIsNoneIsIgnored) {
  absl::Status status = absl::AbortedError("a");
  status.SetPayload("lockstep/newest_incarnation", absl::Cord("-7"));
  status.SetPayload("lockstep/cause", absl::Cord("12"));

  EXPECT_EQ(NewestIncarnationOf(status), 0);
  EXPECT_EQ(CauseOf(status), FailureCause::kUnspecified);
}

}  // namespace
}  // namespace lockstep::testing
