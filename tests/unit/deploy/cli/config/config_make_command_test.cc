#include "deploy/cli/config/config_make_command.h"

#include "common/cluster/cluster.h"
#include "common/cluster/cluster_environment.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

class ConfigMakeCommandTest : public testing::CommandTest {
 protected:
  int Make(const std::vector<std::string>& args) {
    return Run<ConfigMakeCommand>("make", args);
  }
};

TEST_F(ConfigMakeCommandTest, WritesAClusterFile) {
  EXPECT_EQ(Make({"--ps", "1", "--workers", "2", "--host-pattern",
                  "{task}{index}.net"}),
            0);
  EXPECT_EQ(Out(),
            "{\n"
            "  \"cluster\": {\n"
            "    \"chief\": [\"chief0.net:2222\"],\n"
            "    \"ps\": [\"ps0.net:2222\"],\n"
            "    \"worker\": [\"worker0.net:2222\",\"worker1.net:2222\"]\n"
            "  }\n"
            "}\n");
}

TEST_F(ConfigMakeCommandTest, HostsMayBeIpv6Addresses) {
  EXPECT_EQ(
      Make({"--ps", "0", "--workers", "2", "--hosts", "[fd00::1],[fd00::2]"}),
      0)
      << Err();
  EXPECT_THAT(Out(),
              HasSubstr("\"worker\": [\"[fd00::1]:2223\",\"[fd00::2]:2222\"]"));
  EXPECT_EQ(Make({"--ps", "0", "--workers", "1", "--no_chief", "--hosts",
                  "[fd00::3]"}),
            0)
      << Err();
  EXPECT_THAT(Out(), HasSubstr("\"worker\": [\"[fd00::3]:2222\"]"));
}

TEST_F(ConfigMakeCommandTest, WritesTheTfConfigOfATask) {
  EXPECT_EQ(Make({"--no_chief", "--task", "worker:0"}), 0);
  EXPECT_THAT(Out(), HasSubstr("\"task\": {\"index\":0,\"type\":\"worker\"}"));
}

TEST_F(ConfigMakeCommandTest, AnEnvironmentLineIsReadBack) {
  EXPECT_EQ(Make({"--task", "ps:0", "--environment"}), 0);

  const auto variables = ParseEnvironmentFile(Out(), "out");
  ASSERT_OK(variables);
  const auto config = TfConfigOfEnvironment(*variables);
  ASSERT_OK(config);
  const auto cluster = Cluster::Make(*config);
  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->self(), (TaskId{TaskType::kPs, 0}));
}

TEST_F(ConfigMakeCommandTest, BadFlagsAreNamed) {
  EXPECT_EQ(Make({"--ps", "-1"}), 2);
  EXPECT_EQ(Make({"--task", "worker"}), 2);
  EXPECT_EQ(Make({"--task", "worker:9"}), 2);
  EXPECT_EQ(Make({"--environment"}), 2);
  EXPECT_EQ(Out(), "");
  EXPECT_THAT(Err(), HasSubstr("lockstep config make: --ps is -1"));
  EXPECT_THAT(Err(), HasSubstr("--task is \"worker\", but must be such as"));
  EXPECT_THAT(Err(), HasSubstr("--task is \"worker:9\", which the cluster"));
  EXPECT_THAT(Err(), HasSubstr("--environment needs a task"));
}

}  // namespace
}  // namespace lockstep::cli
