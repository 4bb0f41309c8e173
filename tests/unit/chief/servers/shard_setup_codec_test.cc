#include "chief/servers/shard_setup_codec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

TEST(ShardSetupCodecTest, ServerWithoutPartsIsNotNamed) {
  Plan plan;
  plan.variables = {{"w", {6}, DType::kFloat32, {}}};
  plan.parts = {{.variable = 0, .offset = 0, .count = 6, .server = 1}};

  const v1::CreateShardRequest with =
      ToCreateRequest(JobConfig(), plan, 1, ShardCalls::State::kDiscard);
  EXPECT_EQ(with.parts_size(), 1);
  EXPECT_EQ(with.server(), 1);
  EXPECT_TRUE(with.discard());
  const v1::CreateShardRequest without =
      ToCreateRequest(JobConfig(), plan, 2, ShardCalls::State::kKeep);
  EXPECT_EQ(without.parts_size(), 0);
  EXPECT_FALSE(without.has_server());
  EXPECT_FALSE(without.discard());
}

TEST(ShardSetupCodecTest, AnswerForOtherVariablesIsRefused) {
  v1::CreateShardResponse response;
  response.add_variables()->add_names("Momentum");
  response.set_committed_step(7);

  const auto created = AnswerFrom(response, 1, /*takes_part=*/true);
  ASSERT_OK(created);
  EXPECT_THAT(created->slots, ElementsAre(ElementsAre("Momentum")));
  EXPECT_TRUE(created->report.takes_part);
  EXPECT_EQ(created->report.committed_step, 7);
  EXPECT_THAT(
      AnswerFrom(response, 2, /*takes_part=*/true),
      StatusIs(absl::StatusCode::kInternal, "variables: 1 answered for 2"));
}

TEST(ShardSetupCodecTest, OpeningHasTheExpiredIncarnations) {
  ShardCalls::Opening opening;
  opening.global_step = 3;
  opening.expired = {{2, 9}};

  const v1::ActivateRequest request = ToActivateRequest(opening);

  EXPECT_EQ(request.global_step(), 3);
  ASSERT_EQ(request.expired_size(), 1);
  EXPECT_EQ(request.expired(0).worker(), 2);
  EXPECT_EQ(request.expired(0).incarnation(), 9u);
}

}  // namespace
}  // namespace lockstep::chief
