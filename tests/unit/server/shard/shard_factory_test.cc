#include "server/shard/shard_factory.h"

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using ShardFactoryTest = ShardFixture;

TEST_F(ShardFactoryTest, StateOfAKilledProcessIsKeptUnlessItIsNotWanted) {
  {
    auto made = MakeShard(options_, Keep::kState);
    ASSERT_OK(made);
    EXPECT_TRUE(made->is_new);
    ASSERT_OK(made->shard->Activate(7, {}));
  }
  {
    auto made = MakeShard(options_, Keep::kState);
    ASSERT_OK(made);
    EXPECT_FALSE(made->is_new);
    EXPECT_EQ(made->shard->GetReport().committed_step, 7);
  }

  auto made = MakeShard(options_, Keep::kNothing);
  ASSERT_OK(made);
  EXPECT_TRUE(made->is_new);
  EXPECT_EQ(made->shard->GetReport().committed_step, -1);
}

TEST_F(ShardFactoryTest, LogSaysWhyStateCountsAsNone) {
  {
    const auto made = MakeShard(options_, Keep::kState);
    ASSERT_OK(made);
  }
  const std::string path =
      std::filesystem::directory_iterator(options_.state_dir)->path();
  std::filesystem::resize_file(path, 100);
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));

  const auto made = MakeShard(options_, Keep::kState);

  spdlog::set_default_logger(before);
  ASSERT_OK(made);
  EXPECT_TRUE(made->is_new);
  EXPECT_THAT(log.str(), AllOf(HasSubstr("counts as none: "), HasSubstr(path),
                               HasSubstr("100 bytes")));
}

TEST_F(ShardFactoryTest, ShardThatDiffersInAnythingLastingIsAnother) {
  const auto made = MakeShard(options_, Keep::kState);
  ASSERT_OK(made);
  const auto check = [&](const ShardState::Options& wanted) {
    return CheckSameShard(*made->shard, options_.variables, wanted);
  };
  const auto another = StatusIs(absl::StatusCode::kFailedPrecondition);

  ShardState::Options wanted = options_;
  wanted.job.learning_rate.base = 7;
  EXPECT_OK(check(wanted));
  EXPECT_TRUE(IsToOpenAgain(*made->shard, wanted));
  EXPECT_FALSE(IsToOpenAgain(*made->shard, options_));
  wanted = options_;
  wanted.parts[0].reducer = 1;
  EXPECT_OK(check(wanted));
  EXPECT_TRUE(IsToOpenAgain(*made->shard, wanted));
  wanted = options_;
  wanted.job.mode = SyncMode::kCompatible;
  EXPECT_THAT(check(wanted), another);
  wanted = options_;
  wanted.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  EXPECT_THAT(check(wanted), another);
  wanted = options_;
  wanted.job.total_num_replicas = 3;
  EXPECT_THAT(check(wanted), another);
  wanted = options_;
  wanted.parts.pop_back();
  EXPECT_THAT(check(wanted), another);
  wanted = options_;
  wanted.variables[0].name = "v";
  EXPECT_THAT(check(wanted), another);
}

TEST_F(ShardFactoryTest, RuleWithOtherSlotsIsAnotherLayout) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kRmsProp;
  const auto made = MakeShard(options_, Keep::kState);
  ASSERT_OK(made);
  ShardState::Options wanted = options_;
  wanted.job.optimizer.centered = true;

  EXPECT_THAT(CheckSameShard(*made->shard, options_.variables, wanted),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another layout")));
}

TEST_F(ShardFactoryTest, OtherRulesAreRefusedWhereTheJobWouldGoBack) {
  options_.job.mode = SyncMode::kCompatible;
  const auto made = MakeShard(options_, Keep::kState);
  ASSERT_OK(made);
  ShardState::Options wanted = options_;
  wanted.job.optimizer.use_nesterov = true;
  const auto check = [&] {
    return CheckSameShard(*made->shard, options_.variables, wanted);
  };
  EXPECT_OK(check());  // no step was made that could be lost

  ASSERT_OK(made->shard->Activate(0, {}));

  EXPECT_THAT(check(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("optimizer.use_nesterov"),
                                      HasSubstr("restart all servers"))));
}

}  // namespace
}  // namespace lockstep::server
