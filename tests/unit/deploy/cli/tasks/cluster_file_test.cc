#include "deploy/cli/tasks/cluster_file.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST(ClusterFileTest, IsSeenByTheTaskThatHostsTheChief) {
  const auto with_chief = ParseClusterFile(
      R"({"cluster": {"chief": ["c:0"], "ps": ["p:0"], "worker": ["w:0"]}})",
      "c.json");
  const auto without = ParseClusterFile(
      R"({"cluster": {"ps": ["p:0"], "worker": ["w:0", "w:0"]}})", "c.json");

  ASSERT_OK(with_chief);
  EXPECT_EQ(with_chief->self(), (TaskId{TaskType::kChief, 0}));
  ASSERT_OK(without);
  EXPECT_EQ(without->self(), (TaskId{TaskType::kWorker, 0}));
  EXPECT_EQ(without->num_workers(), 2);
}

TEST(ClusterFileTest, ItsTaskIsIgnored) {
  const auto cluster = ParseClusterFile(
      R"({"cluster": {"ps": ["p:1"], "worker": ["w:1"]},
          "task": {"type": "ps", "index": 0}})",
      "c.json");

  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->self(), (TaskId{TaskType::kWorker, 0}));
}

TEST(ClusterFileTest, WithoutAClusterItIsRefusedWithWhatToWrite) {
  for (const char* json : {"{}", R"({"ps": ["p:1"], "worker": ["w:1"]})"}) {
    EXPECT_THAT(
        ParseClusterFile(json, "c.json"),
        StatusIs(kRefused, HasSubstr("c.json: there is no cluster; write "
                                     "{\"cluster\": {\"ps\": ")))
        << json;
  }
}

TEST(ClusterFileTest, AClusterOfTheWrongTypeIsNotCalledMissing) {
  EXPECT_THAT(ParseClusterFile(R"({"cluster": 3})", "c.json"),
              StatusIs(kRefused, AllOf(HasSubstr("c.json: cluster is"),
                                       Not(HasSubstr("there is no")))));
}

TEST(ClusterFileTest, AFileThatIsNotThereIsNamedWithItsFlag) {
  const testing::TempDir dir;

  EXPECT_THAT(ReadClusterFile(dir.Join("none")),
              StatusIs(kRefused, HasSubstr("--cluster " + dir.Join("none"))));
}

TEST(WarningLinesTest, EachWarningHasALine) {
  EXPECT_EQ(WarningLines({}), "");
  EXPECT_EQ(WarningLines({"one", "two"}), "warning: one\nwarning: two\n");
}

}  // namespace
}  // namespace lockstep::cli
