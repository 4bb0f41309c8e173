#include "deploy/lockstep/run_setup.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "deploy/lockstep/log_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class RunSetupTest : public ::testing::Test {
 protected:
  RunSetupTest() {
    Write("cluster.json",
          R"({"cluster": {"chief": ["localhost:0"], "ps": ["localhost:0"],
              "worker": ["localhost:0", "localhost:0"]}})");
    Write("job.textproto",
          "name: 'tiny' train_steps: 5 batch_size: 2\n"
          "data { train_images: 'a' train_labels: 'b' }\n");
    for (const char* program : {"chief", "ps_server", "worker"}) {
      Write(program, "#!/bin/sh\n");
      chmod(directory_.Join(program).c_str(), 0755);
    }
    request_ = {.cluster_file = directory_.Join("cluster.json"),
                .job_file = directory_.Join("job.textproto"),
                .log_dir = directory_.Join("logs"),
                .state_dir = directory_.Join("state"),
                .program_dir = directory_.path()};
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.Join(name)) << text;
  }

  TempDir directory_;
  RunRequest request_;
};

TEST_F(RunSetupTest, EverythingIsThereBeforeTheFirstProcess) {
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_EQ(setup->job_name, "tiny");
  EXPECT_EQ(setup->needed_workers, 2);
  EXPECT_EQ(setup->launches.size(), 4u);
  EXPECT_EQ(setup->ports.size(), 4u);
  EXPECT_TRUE(fs::is_directory(directory_.Join("state/ps-0")));
}

TEST_F(RunSetupTest, StatusFindsTheChiefThroughTheLogDirectory) {
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
  ASSERT_THAT(setup, IsOk());

  EXPECT_THAT(ReadTextFile(directory_.Join("logs/chief.address")),
              IsOkAndHolds(setup->cluster.chief_address + "\n"));
  const absl::StatusOr<std::string> json =
      ReadTextFile(directory_.Join("logs/cluster.json"));
  ASSERT_THAT(json, IsOk());
  EXPECT_THAT(ChiefAddressOf(*json, "cluster.json"),
              IsOkAndHolds(setup->cluster.chief_address));
  EXPECT_THAT(*json, ::testing::Not(HasSubstr("task")));
}

TEST_F(RunSetupTest, APrivateStateDirectoryGoesWithTheRun) {
  request_.state_dir.clear();
  std::string path;
  {
    const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
    ASSERT_THAT(setup, IsOk());
    path = setup->state->path();
    EXPECT_TRUE(fs::is_directory(path + "/ps-0"));
  }

  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RunSetupTest, SettingsChangeTheJob) {
  request_.settings = {"replicas_to_aggregate=1", "name=other"};

  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_EQ(setup->job_name, "other");
  EXPECT_EQ(setup->needed_workers, 1);
}

TEST_F(RunSetupTest, CoresAreSharedOutUnlessTold) {
  request_.compute_threads = 7;

  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_THAT(setup->launches.back().args, ::testing::Contains("7"));
}

TEST_F(RunSetupTest, BadInputIsRefusedBeforeAnythingIsMade) {
  request_.settings = {"train_stepz=1"};
  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("train_stepz")));

  request_.settings = {"train_steps=-1"};
  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("train_steps")));

  request_.settings = {};
  Write("job.textproto", "nonsense");
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("job.textproto")));

  Write("cluster.json", "{");
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("cluster.json")));

  EXPECT_FALSE(fs::exists(directory_.Join("logs")));
  EXPECT_FALSE(fs::exists(directory_.Join("state")));
}

TEST_F(RunSetupTest, MissingFilesAreNamed) {
  request_.job_file = directory_.Join("missing");
  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("missing")));

  request_.cluster_file = directory_.Join("absent");
  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("absent")));
}

TEST_F(RunSetupTest, AMissingProgramIsNamedWithItsTask) {
  fs::remove(directory_.Join("worker"));

  EXPECT_THAT(
      SetUpRun(request_),
      StatusIs(kInvalid, AllOf(HasSubstr("/worker"), HasSubstr("worker 0"))));
}

}  // namespace
}  // namespace lockstep
