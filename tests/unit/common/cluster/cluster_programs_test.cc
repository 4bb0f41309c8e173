// What the tasks of a cluster may do: which strategies it fits, and which
// program runs a task.

#include <string>
#include <utility>

#include "common/cluster/cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/cluster/cluster_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::kChief0;
using ::lockstep::testing::kEvaluator0;
using ::lockstep::testing::kFull;
using ::lockstep::testing::kNoChief;
using ::lockstep::testing::kPs0;
using ::lockstep::testing::kWorker0;
using ::lockstep::testing::kWorker1;
using ::lockstep::testing::Make;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

struct StrategyCase {
  const char* cluster;
  TaskId self;
  const char* parameter_servers;  // part of the message; empty: fine
  const char* all_reduce;         // the same
};

class StrategyTest : public ::testing::TestWithParam<StrategyCase> {};

void ExpectMessage(const absl::Status& status, const std::string& message) {
  if (message.empty()) {
    EXPECT_OK(status);
  } else {
    EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr(message)));
  }
}

TEST_P(StrategyTest, FitsItsClusters) {
  const auto cluster = Make(GetParam().cluster, GetParam().self);

  ASSERT_OK(cluster);
  ExpectMessage(cluster->ValidateForParameterServers(),
                GetParam().parameter_servers);
  ExpectMessage(cluster->ValidateForAllReduce(), GetParam().all_reduce);
}

INSTANTIATE_TEST_SUITE_P(
    All, StrategyTest,
    ::testing::Values(
        StrategyCase{kFull, kChief0, "", ""},
        StrategyCase{kFull, kWorker1, "", ""},
        StrategyCase{kFull, kPs0, "", "task is a ps"},
        StrategyCase{kFull, kEvaluator0, "task is an evaluator", ""},
        StrategyCase{kNoChief, kWorker0, "", ""},
        StrategyCase{R"({"worker": ["w:1"]})", kWorker0,
                     "cluster.ps is empty; add 1 or more ps", ""},
        StrategyCase{R"({"ps": ["p:1"]})", kPs0,
                     "cluster.worker is empty; add 1 or more workers",
                     "task is a ps"},
        StrategyCase{R"({"chief": ["c:1"], "ps": ["p:1"]})", kChief0,
                     "cluster.worker is empty", ""},
        StrategyCase{R"({"chief": ["c:1"], "ps": ["p:1"], "wrker": ["w:1"]})",
                     kChief0,
                     "none of chief, worker, ps, evaluator; ignored; did you "
                     "mean worker?",
                     ""},
        StrategyCase{R"({"worker": {"1": "w:2"}, "ps": ["p:1"]})", kWorker1, "",
                     "cluster.worker lacks tasks below 1"},
        StrategyCase{"{}", kWorker0, "there is no cluster; parameter servers",
                     "there is no cluster; all-reduce"}));

TEST(RequireTaskTypeTest, ProgramTakesItsOwnTasks) {
  EXPECT_OK(RequireTaskType(*Make(kFull, kPs0), {TaskType::kPs}, "ps_server"));
  EXPECT_OK(RequireTaskType(*Make(kFull, kWorker0),
                            {TaskType::kWorker, TaskType::kEvaluator},
                            "worker"));
}

TEST(RequireTaskTypeTest, OthersAreToldWhatToStart) {
  for (const auto& [task, program] :
       {std::pair(kChief0, "start chief,"), std::pair(kWorker0, "start worker"),
        std::pair(kPs0, "start ps_server"),
        std::pair(kEvaluator0, "start worker --evaluate")}) {
    EXPECT_THAT(
        RequireTaskType(*Make(kFull, task), {}, "launcher"),
        StatusIs(kInvalid,
                 AllOf(StartsWith("TF_CONFIG: task is " + task.ToString()),
                       HasSubstr("not for launcher"), HasSubstr(program))));
  }
}

TEST(RequireTaskTypeTest, AChiefThatComputesIsStartedAsAWorker) {
  const auto cluster =
      Make(R"({"chief": ["c:1"], "worker": ["w:1"]})", kChief0);
  ASSERT_OK(cluster);
  const auto mirrored = cluster->WithMirrors();
  ASSERT_OK(mirrored);
  EXPECT_THAT(RequireTaskType(*mirrored, {TaskType::kChief}, "chief"),
              StatusIs(kInvalid, HasSubstr("has no ps, so its chief also "
                                           "computes: start worker")));
}

}  // namespace
}  // namespace lockstep
