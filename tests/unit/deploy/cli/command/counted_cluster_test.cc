#include "deploy/cli/command/counted_cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CountedClusterTest, HasAChiefAndAsManyTasksAsCounted) {
  const auto json = CountedClusterJson({.ps = 2, .workers = 3});

  ASSERT_OK(json);
  const nlohmann::json document = nlohmann::json::parse(*json);
  const nlohmann::json& cluster = document.at("cluster");
  EXPECT_EQ(cluster.at("chief").size(), 1u);
  EXPECT_EQ(cluster.at("ps").size(), 2u);
  EXPECT_EQ(cluster.at("worker").size(), 3u);
  EXPECT_EQ(cluster.at("worker")[2], "127.0.0.1:0");
  EXPECT_FALSE(cluster.contains("evaluator"));
}

TEST(CountedClusterTest, AnEvaluatorIsAddedWhereItIsWanted) {
  const auto json = CountedClusterJson({.workers = 1, .evaluator = true});

  ASSERT_OK(json);
  const nlohmann::json document = nlohmann::json::parse(*json);
  EXPECT_EQ(document.at("cluster").at("evaluator").size(), 1u);
}

TEST(CountedClusterTest, NumbersThatMakeNoClusterAreRefusedWithTheirFlag) {
  const auto refused = [](const TaskCounts& counts, const char* why) {
    EXPECT_THAT(CountedClusterJson(counts),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({}, "give --workers N, or --cluster FILE");
  refused({.ps = 0, .workers = 1}, "--ps is 0");
  refused({.workers = 2, .backups = 2}, "--backups is 2, but must be below");
  refused({.workers = 2, .backups = -1}, "--backups is -1");
}

TEST(CountedClusterTest, BackupsAreLeftOutOfEachStep) {
  EXPECT_THAT(WithBackups({.workers = 4}, {"seed=1"}),
              IsOkAndHolds(ElementsAre("seed=1")));
  EXPECT_THAT(WithBackups({.workers = 4, .backups = 1}, {"seed=1"}),
              IsOkAndHolds(ElementsAre("seed=1", "replicas_to_aggregate=3",
                                       "total_num_replicas=4")));
}

TEST(CountedClusterTest, BackupsWithoutAsManyWorkersMakeNoSettings) {
  EXPECT_THAT(WithBackups({.backups = 2}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there are no workers")));
  EXPECT_THAT(WithBackups({.workers = 3, .backups = 5}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--backups is 5, but must be below "
                                 "--workers, which is 3")));
}

TEST(CountedClusterTest, BackupsThatASettingContradictsAreRefused) {
  const std::string automatic = "replicas_to_aggregate=AUTO";
  EXPECT_THAT(WithBackups({.workers = 4}, {automatic}),
              IsOkAndHolds(ElementsAre(automatic)));
  EXPECT_THAT(WithBackups({.workers = 4, .backups = 1}, {automatic}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("contradicts --backups 1, which sets it to "
                                 "3; give one")));
}

}  // namespace
}  // namespace lockstep::cli
