#include "deploy/cli/tasks/local_cluster.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kFull[] = R"({"cluster": {
    "worker": ["localhost:0", "127.0.0.1:7001"],
    "evaluator": ["localhost:0"],
    "chief": ["localhost:0"],
    "ps": ["[::1]:0"]}})";

class LocalClusterTest : public ::testing::Test {
 protected:
  absl::StatusOr<LocalCluster> Make(absl::string_view json) {
    return MakeLocalCluster(json, "c.json", hosts_, [this] { return port_++; });
  }

  const LocalHosts hosts_{{"box", {}, [](const std::string& host) {
                             return host == "box" || host == "localhost"
                                        ? std::vector<std::string>{"127.0.0.1"}
                                        : std::vector<std::string>();
                           }}};
  int port_ = 9000;
};

TEST_F(LocalClusterTest, PortsThatAreZeroAreChosen) {
  const absl::StatusOr<LocalCluster> cluster = Make(kFull);

  ASSERT_THAT(cluster, IsOk());
  EXPECT_THAT(cluster->spec.TaskAddress("worker", 1),
              IsOkAndHolds("127.0.0.1:7001"));
  EXPECT_THAT(cluster->spec.TaskAddress("ps", 0),
              IsOkAndHolds(::testing::StartsWith("[::1]:90")));
  EXPECT_THAT(cluster->chief_address, ::testing::StartsWith("localhost:90"));
  EXPECT_EQ(port_, 9004);
}

TEST_F(LocalClusterTest, APortThatIsGivenIsChosenForNoOtherTask) {
  const absl::StatusOr<LocalCluster> cluster = Make(
      R"({"cluster": {"chief": ["localhost:0"], "ps": ["localhost:0"],
          "worker": ["localhost:9000", "localhost:9002"]}})");

  ASSERT_THAT(cluster, IsOk());
  EXPECT_THAT(cluster->spec.TaskAddress("chief", 0),
              IsOkAndHolds("localhost:9001"));
  EXPECT_THAT(cluster->spec.TaskAddress("ps", 0),
              IsOkAndHolds("localhost:9003"));
}

TEST_F(LocalClusterTest, ServersStartFirst) {
  const absl::StatusOr<LocalCluster> cluster = Make(kFull);

  ASSERT_THAT(cluster, IsOk());
  EXPECT_THAT(
      cluster->tasks,
      ElementsAre(TaskId{TaskType::kPs, 0}, TaskId{TaskType::kChief, 0},
                  TaskId{TaskType::kWorker, 0}, TaskId{TaskType::kWorker, 1},
                  TaskId{TaskType::kEvaluator, 0}));
  EXPECT_EQ(cluster->num_workers, 2);
}

TEST_F(LocalClusterTest, WithoutAChiefJobWorkerZeroIsAsked) {
  const absl::StatusOr<LocalCluster> cluster =
      Make(R"({"cluster": {"ps": ["box:1"], "worker": ["box:2", "box:3"]}})");

  ASSERT_THAT(cluster, IsOk());
  EXPECT_EQ(cluster->chief, (TaskId{TaskType::kWorker, 0}));
  EXPECT_EQ(cluster->chief_address, "box:2");
}

TEST_F(LocalClusterTest, AnAddressElsewhereIsNamedByItsPath) {
  EXPECT_THAT(
      Make(R"({"cluster": {"ps": ["box:1"], "worker": ["box:2", "far:3"]}})"),
      StatusIs(kInvalid,
               AllOf(HasSubstr("c.json"), HasSubstr("cluster.worker[1]"),
                     HasSubstr("far:3"), HasSubstr("localhost"))));
}

TEST_F(LocalClusterTest, AnOwnNameThatDoesNotResolveIsNamedByItsPath) {
  for (const char* name : {"Box.", "ps0.localhost"}) {
    EXPECT_THAT(
        Make(absl::StrCat(R"({"cluster": {"ps": ["box:1"], "worker": [")", name,
                          R"(:0"]}})")),
        StatusIs(kInvalid, AllOf(HasSubstr("c.json: cluster.worker[0]"),
                                 HasSubstr("a name that does not resolve"))))
        << name;
  }
}

TEST_F(LocalClusterTest, ADocumentWithoutAClusterShowsWhatToWrite) {
  EXPECT_THAT(Make("{}"), StatusIs(kInvalid, HasSubstr("{\"cluster\":")));
  EXPECT_THAT(Make(R"({"ps": ["box:1"]})"),
              StatusIs(kInvalid, HasSubstr("{\"cluster\":")));
}

TEST_F(LocalClusterTest, NonsenseIsRefused) {
  EXPECT_THAT(Make(""), StatusIs(kInvalid));
  EXPECT_THAT(Make("[1, 2"), StatusIs(kInvalid));
  EXPECT_THAT(Make(R"({"cluster": {"ps": ["box:2"]}})"), StatusIs(kInvalid));
  EXPECT_THAT(Make(R"({"cluster": {"ps": ["box:1"], "worker": ["box:1"]}})"),
              StatusIs(kInvalid));
  EXPECT_THAT(Make(R"({"cluster": {"ps": ["box"], "worker": ["box:1"]}})"),
              StatusIs(kInvalid));
}

TEST_F(LocalClusterTest, WithoutPsTheTasksThatComputeHaveMirrors) {
  const auto cluster =
      Make(R"({"cluster": {"chief": ["box:1"], "worker": ["box:2"]}})");

  ASSERT_OK(cluster);
  EXPECT_TRUE(cluster->hosts_mirrors);
  EXPECT_EQ(cluster->num_workers, 2);
}

TEST_F(LocalClusterTest, JobsWithHolesCannotBeStarted) {
  EXPECT_THAT(
      Make(R"({"cluster": {"ps": ["box:1"],
                           "worker": {"0": "box:2", "2": "box:3"}}})"),
      StatusIs(kInvalid, HasSubstr("cluster.worker leaves out indices")));
}

TEST_F(LocalClusterTest, NoFreePortIsNoCluster) {
  EXPECT_THAT(MakeLocalCluster(kFull, "c.json", hosts_,
                               []() -> absl::StatusOr<int> {
                                 return absl::ResourceExhaustedError("none");
                               }),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ChiefAddressTest, IsThatOfTheChiefOrOfWorkerZero) {
  EXPECT_THAT(ChiefAddressOf(R"({"cluster": {"ps": ["a:1"], "worker": ["b:2"],
                                             "chief": ["far:3"]}})",
                             "c.json"),
              IsOkAndHolds("far:3"));
  EXPECT_THAT(
      ChiefAddressOf(R"({"cluster": {"ps": ["a:1"], "worker": ["b:2"]}})",
                     "c.json"),
      IsOkAndHolds("b:2"));
}

TEST(ChiefAddressTest, APortThatWasChosenLaterIsUnknown) {
  EXPECT_THAT(ChiefAddressOf(kFull, "c.json"),
              StatusIs(kInvalid, HasSubstr("--log_dir")));
}

}  // namespace
}  // namespace lockstep::cli
