#include "worker/loop/gradient_pass.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

TEST(GradientPassTest, PlainPassHasItsValuesAndIsWanted) {
  GradientPass pass;

  pass.GradientReady(3);

  EXPECT_TRUE(pass.HasAllValues());
  EXPECT_THAT(pass.NeedValues(0, 4), IsOk());
  EXPECT_THAT(pass.CheckWanted(), IsOk());
}

TEST(GradientPassTest, PassThatIsNotWantedNeedsNoValues) {
  class Unwanted final : public GradientPass {
    absl::Status CheckWanted() override {
      return absl::AbortedError("not wanted");
    }
  } unwanted;
  GradientPass& pass = unwanted;

  EXPECT_THAT(pass.NeedValues(0, 4), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace lockstep::worker
