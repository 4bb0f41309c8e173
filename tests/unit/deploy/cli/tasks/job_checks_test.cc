#include "deploy/cli/tasks/job_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/directory_owner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class JobChecksTest : public ::testing::Test {
 protected:
  JobChecksTest() {
    std::ofstream(directory_.Join("a")) << "x";
    job_.data.train_images = directory_.Join("a");
    job_.data.train_labels = directory_.Join("a");
  }

  TempDir directory_;
  JobConfig job_;
};

TEST_F(JobChecksTest, AMissingFileIsNamedWithItsField) {
  job_.data.train_labels = "labels";

  EXPECT_THAT(
      CheckModelAndData(job_, false),
      StatusIs(kInvalid, AllOf(HasSubstr("data.train_labels is labels: No such "
                                         "file or directory; a relative path "
                                         "begins at "),
                               HasSubstr(std::filesystem::current_path()))));
}

TEST_F(JobChecksTest, TheTestSetIsNeededByTheEvaluatorAlone) {
  job_.data.test_files = {directory_.Join("a"), directory_.Join("b")};

  EXPECT_THAT(CheckModelAndData(job_, false), IsOk());
  EXPECT_THAT(CheckModelAndData(job_, true),
              StatusIs(kInvalid, HasSubstr("data.test_files[1] is ")));
}

TEST_F(JobChecksTest, ADirectoryIsNoData) {
  job_.data.train_images = directory_.path();

  EXPECT_THAT(CheckModelAndData(job_, false),
              StatusIs(kInvalid, HasSubstr("it is no file")));
}

TEST_F(JobChecksTest, AKnownDataSetIsAPackage) {
  job_.data.train_images = "/usr/share/datasets/no-such-set/train.gz";

  EXPECT_THAT(
      CheckModelAndData(job_, false),
      StatusIs(kInvalid, HasSubstr("install the package dataset-no-such-set")));
}

TEST_F(JobChecksTest, ADirectoryOfCheckpointsNeedNotBeThereYet) {
  EXPECT_THAT(CheckCheckpoints(job_, false), IsOk());

  job_.checkpoint.directory = directory_.Join("new/deep");

  EXPECT_THAT(CheckCheckpoints(job_, false), IsOk());
}

// One trial, the same as the chief's.
TEST_F(JobChecksTest, ADirectoryOfCheckpointsThatCannotBeIsRefused) {
  job_.checkpoint.directory = directory_.Join("a/b");
  EXPECT_EQ(
      CheckCheckpoints(job_, false),
      absl::InvalidArgumentError(
          CheckpointStore(directory_.Join("a/b")).CheckWritable().message()));
}

TEST_F(JobChecksTest, ADirectoryThatMayNotBeWrittenIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  job_.checkpoint.directory = directory_.Join("checkpoints");

  EXPECT_THAT(CheckCheckpoints(job_, false),
              StatusIs(kInvalid, HasSubstr("checkpoint.directory: ")));
  chmod(directory_.path().c_str(), 0755);
}

TEST_F(JobChecksTest, ADirectoryThatARunningJobHasIsRefused) {
  job_.checkpoint.directory = directory_.Join("checkpoints");
  const auto owner = DirectoryOwner::Take(job_.checkpoint.directory, "bible-1");
  ASSERT_THAT(owner, IsOk());

  EXPECT_THAT(CheckCheckpoints(job_, false),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("in use by the job bible-1")));
}

TEST_F(JobChecksTest, GpusAreCountedByTheirDevices) {
  EXPECT_THAT(CheckGpus(0, directory_.path()), IsOk());
  EXPECT_THAT(CheckGpus(1, directory_.path()),
              StatusIs(kInvalid, AllOf(HasSubstr("--gpus is 1"),
                                       HasSubstr("leave the flag out"))));

  for (const char* name : {"nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm"}) {
    std::ofstream(directory_.Join(name)) << "";
  }

  EXPECT_THAT(CheckGpus(2, directory_.path()), IsOk());
  EXPECT_THAT(CheckGpus(3, directory_.path()),
              StatusIs(kInvalid, HasSubstr("this machine shows 2")));
}

}  // namespace
}  // namespace lockstep
