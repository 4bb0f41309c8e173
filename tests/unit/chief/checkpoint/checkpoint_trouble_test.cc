#include "chief/checkpoint/checkpoint_trouble.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::Eq;
using ::testing::Optional;

const absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Status NoSpace(const std::string& file) {
  return absl::ResourceExhaustedError("no space for " + file);
}

absl::Status ReadOnly() { return absl::PermissionDeniedError("read-only"); }

TEST(CheckpointTroubleTest, TheFirstFailureAndTheEndOfTheTroubleAreSaid) {
  CheckpointTrouble trouble;
  EXPECT_EQ(trouble.Saved(10), std::nullopt);

  EXPECT_THAT(trouble.Failed(20, NoSpace("a"), kStart),
              Optional(Eq("the checkpoint of step 20 could not be written: "
                          "no space for a")));
  EXPECT_EQ(trouble.Failed(30, NoSpace("b"), kStart), std::nullopt);

  EXPECT_THAT(trouble.Saved(40),
              Optional(Eq("checkpoints can be written again: that of step 40 "
                          "is there, after 2 failures")));
  EXPECT_EQ(trouble.Saved(50), std::nullopt);
}

TEST(CheckpointTroubleTest, AnotherReasonIsSaidAtOnceTheSameOneNowAndThen) {
  CheckpointTrouble trouble;
  ASSERT_TRUE(trouble.Failed(10, NoSpace("a"), kStart).has_value());

  EXPECT_TRUE(trouble.Failed(20, ReadOnly(), kStart).has_value());
  EXPECT_EQ(trouble.Failed(
                30, ReadOnly(),
                kStart + CheckpointTrouble::kRepeat - absl::Milliseconds(1)),
            std::nullopt);
  EXPECT_TRUE(
      trouble.Failed(40, ReadOnly(), kStart + CheckpointTrouble::kRepeat)
          .has_value());
}

}  // namespace
}  // namespace lockstep::chief
