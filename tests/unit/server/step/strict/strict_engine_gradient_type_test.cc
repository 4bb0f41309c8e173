#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two workers, both count; one part.
class StrictEngineGradientTypeTest : public ::testing::Test {
 protected:
  static Push PushWith(int worker, PartGradient gradient) {
    Push push = PushOf({worker, 1, 0, 1, 0}, 1, 0, 1, 0);
    push.gradients = {std::move(gradient)};
    return push;
  }
  void ExpectRefused(const PartGradient& gradient, const char* why) {
    EXPECT_THAT(shard_.AddPush(1, PushWith(0, gradient)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
    EXPECT_OK(shard_.AddPush(2, PushWith(1, GradientOf(1))));
    EXPECT_THAT(updater_.updates(), IsEmpty());
  }

  FakePartUpdater updater_{1};
  StrictEngine shard_{{.replicas_to_aggregate = 2, .total_num_replicas = 2},
                      updater_};
};

TEST_F(StrictEngineGradientTypeTest, GradientsOfAStepMayBeOfDifferentTypes) {
  EXPECT_OK(shard_.AddPush(1, PushWith(1, GradientOf(3))));

  EXPECT_OK(shard_.AddPush(2, PushWith(0, BFloat16GradientOf(0.5f))));

  EXPECT_THAT(updater_.updates(),
              ElementsAre(FakePartUpdater::Update_{0, 0, {0.5f, 3}}));
}

TEST_F(StrictEngineGradientTypeTest, FloatSaidToBeBFloat16IsRefused) {
  PartGradient gradient = GradientOf(1);
  gradient.type = GradientType::kBFloat16;

  ExpectRefused(gradient, "has 4 bytes; as BFLOAT16 the part has 2");
}

TEST_F(StrictEngineGradientTypeTest, BFloat16SaidToBeAFloatIsRefused) {
  PartGradient gradient = BFloat16GradientOf(1);
  gradient.type = GradientType::kVariable;

  ExpectRefused(gradient, "has 2 bytes; as VARIABLE the part has 4");
}

TEST_F(StrictEngineGradientTypeTest, TypeThatThePartDoesNotTakeIsRefused) {
  PartGradient gradient = GradientOf(1);
  gradient.type = static_cast<GradientType>(9);

  ExpectRefused(gradient, "gradient type");
}

TEST_F(StrictEngineGradientTypeTest, NonFiniteBFloat16IsRefused) {
  ASSERT_OK(shard_.AddPush(1, PushWith(0, BFloat16GradientOf(HUGE_VALF))));

  const auto answers = shard_.AddPush(2, PushWith(1, GradientOf(1)));

  ASSERT_OK(answers);
  ASSERT_THAT(answers->pushes, SizeIs(1));
  EXPECT_THAT(
      answers->pushes[0].status,
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("holds NaN")));
}

}  // namespace
}  // namespace lockstep::server
