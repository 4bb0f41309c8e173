#include "strategy/values/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(OptionsTest, ReplicasMustFitTheKindAndTheDevices) {
  StrategyOptions options;
  options.replicas = 0;
  EXPECT_THAT(options.Validate(),
              StatusIs(kInvalid, HasSubstr("replicas is 0")));
  options.replicas = 2;
  EXPECT_THAT(options.Validate(), IsOk());
  options.kind = Kind::kOneDevice;
  EXPECT_THAT(options.Validate(), StatusIs(kInvalid, HasSubstr("must be 1")));
  options.kind = Kind::kMirrored;
  options.devices = {"cpu:0"};
  EXPECT_THAT(options.Validate(), StatusIs(kInvalid, HasSubstr("1 devices")));
  options.devices = {"cpu:0", "cpu:0"};
  EXPECT_THAT(options.Validate(), StatusIs(kInvalid, HasSubstr("twice")));
  options.devices = {"cpu:0", "cuda:0"};
  EXPECT_THAT(options.Validate(), IsOk());
}

TEST(OptionsTest, APackHasNoNegativeSize) {
  EXPECT_THAT(CommunicationOptions{-1}.Validate(),
              StatusIs(kInvalid, HasSubstr("bytes_per_pack is -1")));
  EXPECT_THAT(CommunicationOptions{0}.Validate(), IsOk());
  EXPECT_THAT(CommunicationOptions{}.Validate(), IsOk());
}

TEST(OptionsTest, ACallHasTheTimeoutOfItsGroupOrOneOfItsOwn) {
  CommunicationOptions options;
  EXPECT_EQ(options.GroupTimeout(), std::nullopt);
  options.timeout = absl::Seconds(3);
  EXPECT_THAT(options.Validate(), IsOk());
  EXPECT_EQ(options.GroupTimeout(), absl::Seconds(3));
  options.timeout = absl::ZeroDuration();
  EXPECT_THAT(options.Validate(), IsOk());
  EXPECT_EQ(options.GroupTimeout(), absl::InfiniteDuration());
  options.timeout = absl::Seconds(-1);
  EXPECT_THAT(options.Validate(),
              StatusIs(kInvalid, HasSubstr("timeout is -1s")));
}

}  // namespace
}  // namespace lockstep::strategy
