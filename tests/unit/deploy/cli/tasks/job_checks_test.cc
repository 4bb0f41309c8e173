#include "deploy/cli/tasks/job_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/directory_owner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/common/checkpoint/sample_checkpoint.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::WriteFile;
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
      CheckModelAndData(job_, {}),
      StatusIs(kInvalid, AllOf(HasSubstr("data.train_labels is labels: No such "
                                         "file or directory; a relative path "
                                         "begins at "),
                               HasSubstr(std::filesystem::current_path()))));
}

TEST_F(JobChecksTest, OnlyAFieldOfAnArrayNamesTheFileBeforeTheColon) {
  std::ofstream(directory_.Join("x.npz")) << "x";
  const std::string array = directory_.Join("x.npz:y");
  job_.data.train_images = job_.data.train_labels = array;
  job_.data.test_images = job_.data.test_labels = array;
  EXPECT_THAT(CheckModelAndData(job_, {.has_evaluator = true}), IsOk());
  const auto missing = [&](const char* field, const absl::Status& status) {
    EXPECT_THAT(status,
                StatusIs(kInvalid, HasSubstr(absl::StrCat(field, array))));
  };
  JobConfig text = job_;
  text.data.train_text = array;
  missing("data.train_text is ", CheckModelAndData(text, {}));
  JobConfig table = job_;
  table.data.train_files = {array};
  missing("data.train_files[0] is ", CheckModelAndData(table, {}));
  job_.checkpoint.initial_values = array;
  missing("checkpoint.initial_values is ", CheckCheckpoints(job_, {}));
}

TEST_F(JobChecksTest, TheTestSetIsNeededByTheEvaluatorAlone) {
  job_.data.test_files = {directory_.Join("a"), directory_.Join("b")};

  EXPECT_THAT(CheckModelAndData(job_, {}), IsOk());
  EXPECT_THAT(CheckModelAndData(job_, {.has_evaluator = true}),
              StatusIs(kInvalid, HasSubstr("data.test_files[1] is ")));
}

TEST_F(JobChecksTest, AProgramOfTheUserComputesItsOwnModelAlone) {
  const auto refused = [&](const ComputingPrograms& programs, const char* why) {
    EXPECT_THAT(CheckModelAndData(job_, programs),
                StatusIs(kInvalid, HasSubstr(why)));
  };
  job_.model.kind = "mlp";
  refused({.own_workers = true}, "leave model.kind out, or the command");
  refused({.own_evaluator = true}, "leave model.kind out, or the command");
  job_.model.kind = kExternalModel;
  refused({}, "-- python3 train.py");
  refused({.own_workers = true, .has_evaluator = true}, "--evaluator");
  EXPECT_THAT(CheckModelAndData(job_, {.own_workers = true}), IsOk());
  EXPECT_THAT(CheckModelAndData(job_, {.own_workers = true,
                                       .has_evaluator = true,
                                       .own_evaluator = true}),
              IsOk());
  job_.batch_size = 0;
  EXPECT_THAT(CheckBatch(job_, 2), IsOk());
}

TEST_F(JobChecksTest, ADirectoryIsNoData) {
  job_.data.train_images = directory_.path();

  EXPECT_THAT(CheckModelAndData(job_, {}),
              StatusIs(kInvalid, HasSubstr("it is no file")));
}

TEST_F(JobChecksTest, AKnownDataSetIsAPackage) {
  job_.data.train_images = "/usr/share/datasets/no-such-set/train.gz";

  EXPECT_THAT(
      CheckModelAndData(job_, {}),
      StatusIs(kInvalid, HasSubstr("install the package dataset-no-such-set")));
}

TEST_F(JobChecksTest, ABatchOfMorePicturesThanAWorkerHasIsRefused) {
  job_.data.train_labels = directory_.Join("labels");
  job_.batch_size = 4;
  const Bytes labels = IdxBytes({11}, Bytes(11, 1));
  for (const Bytes& file : {labels, testing::Gzip(labels)}) {
    WriteFile(job_.data.train_labels, file);
    EXPECT_THAT(CheckBatch(job_, 2), IsOk());
    EXPECT_THAT(
        CheckBatch(job_, 3),
        StatusIs(kInvalid,
                 AllOf(HasSubstr("batch_size is 4, but 11 examples over 3 "
                                 "workers"),
                       HasSubstr("are 3 each"))));
  }
  // Elastic: workers may have been removed.
  job_.elastic_workers = true;
  EXPECT_THAT(CheckBatch(job_, 3), IsOk());
  job_.batch_size = 12;
  EXPECT_THAT(CheckBatch(job_, 3), StatusIs(kInvalid, HasSubstr("is 12")));
}

TEST_F(JobChecksTest, ABatchOfMoreTextThanAWorkerHasIsRefused) {
  job_.data.train_text = directory_.Join("text");
  job_.data.sequence_length = 3;
  job_.batch_size = 2;
  const Bytes text(13, 'x');
  for (const Bytes& file : {text, testing::Gzip(text)}) {
    WriteFile(job_.data.train_text, file);
    EXPECT_THAT(CheckBatch(job_, 2), IsOk());
    EXPECT_THAT(CheckBatch(job_, 3),
                StatusIs(kInvalid, HasSubstr("but 4 examples over 3 workers")));
  }
}

TEST_F(JobChecksTest, ABatchOfMoreRowsOfATableThanAWorkerHasIsRefused) {
  job_.model.kind = "logistic_regression";
  job_.model.features = 5;
  job_.data.train_files = {directory_.Join("one"), directory_.Join("two")};
  job_.batch_size = 2;
  for (const std::string& path : job_.data.train_files) {
    std::ofstream(path) << "1 1:1\n0 2:1\n";
  }

  EXPECT_THAT(CheckBatch(job_, 2), IsOk());
  EXPECT_THAT(CheckBatch(job_, 3),
              StatusIs(kInvalid, HasSubstr("but 4 examples over 3 workers")));
}

TEST_F(JobChecksTest, ABatchOfDataThatCannotBeCountedIsLeftToTheWorkers) {
  job_.batch_size = 1000;
  EXPECT_THAT(CheckBatch(job_, 1), IsOk());  // no IDX data

  job_.data.train_text = directory_.Join("text");
  job_.data.sequence_length = 3;
  Bytes damaged = testing::Gzip(Bytes(13, 'x'));
  damaged.pop_back();
  WriteFile(job_.data.train_text, damaged);
  EXPECT_THAT(CheckBatch(job_, 1), IsOk());
  WriteFile(job_.data.train_text, {});
  EXPECT_THAT(CheckBatch(job_, 1), IsOk());

  job_.data.train_text = "";
  job_.data.train_labels = directory_.Join("labels");
  WriteFile(job_.data.train_labels, IdxBytes({1}, {1}));
  EXPECT_THAT(CheckBatch(job_, 1), StatusIs(kInvalid, HasSubstr("is 1000")));
  // Reads data.train_files.
  job_.model.kind = "logistic_regression";
  job_.model.features = 5;
  EXPECT_THAT(CheckBatch(job_, 1), IsOk());
  job_.data.train_files = {directory_.Join("large")};
  std::ofstream(job_.data.train_files[0]) << "1 1:1\n";
  std::filesystem::resize_file(job_.data.train_files[0], (16 << 20) + 1);
  EXPECT_THAT(CheckBatch(job_, 1), IsOk());
}

TEST_F(JobChecksTest, ADirectoryOfCheckpointsNeedNotBeThereYet) {
  EXPECT_THAT(CheckCheckpoints(job_, {}), IsOk());

  job_.checkpoint.directory = directory_.Join("new/deep");

  EXPECT_THAT(CheckCheckpoints(job_, {}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(directory_.Join("new")));
}

// The chief makes the same trial.
TEST_F(JobChecksTest, ADirectoryOfCheckpointsThatCannotBeIsRefused) {
  job_.checkpoint.directory = directory_.Join("a/b");
  EXPECT_EQ(
      CheckCheckpoints(job_, {}),
      absl::InvalidArgumentError(
          CheckpointStore(directory_.Join("a/b")).CheckWritable().message()));
}

TEST_F(JobChecksTest, ADirectoryThatMayNotBeWrittenIsRefused) {
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  job_.checkpoint.directory = directory_.Join("checkpoints");
  // Root may write everywhere.
  constexpr uid_t kNobody = 65534;
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }

  EXPECT_THAT(CheckCheckpoints(job_, {}),
              StatusIs(kInvalid, HasSubstr("checkpoint.directory: ")));
  ASSERT_EQ(seteuid(user), 0);
  chmod(directory_.path().c_str(), 0755);
}

TEST_F(JobChecksTest, AStepWithoutACheckpointIsRefusedWithThoseThatThereAre) {
  EXPECT_THAT(CheckCheckpoints(job_, {.step = 70}),
              StatusIs(kInvalid, HasSubstr("no checkpoint.directory")));
  job_.checkpoint.directory = directory_.Join("checkpoints");
  EXPECT_THAT(CheckCheckpoints(job_, {.step = 70}),
              StatusIs(kInvalid, HasSubstr("--from 70")));
  for (const char* step : {"step-00000050", "step-00000100"}) {
    std::filesystem::create_directories(job_.checkpoint.directory + "/" + step);
  }
  EXPECT_THAT(CheckCheckpoints(job_, {.step = 70}),
              StatusIs(kInvalid, HasSubstr("50, 100")));
  // There, and without a manifest.
  EXPECT_THAT(CheckCheckpoints(job_, {.step = 100}),
              StatusIs(kInvalid, AllOf(HasSubstr("--from 100"),
                                       HasSubstr("manifest.json"))));
  EXPECT_THAT(CheckCheckpoints(job_, {.step = Beginning::kFresh}), IsOk());
}

TEST_F(JobChecksTest, InitialValuesThatAreNotThereAreRefused) {
  job_.checkpoint.initial_values = directory_.Join("nosuch");
  for (const char* directory : {"", "checkpoints"}) {
    if (*directory != 0) job_.checkpoint.directory = directory_.Join(directory);
    EXPECT_THAT(CheckCheckpoints(job_, {}),
                StatusIs(kInvalid, HasSubstr("checkpoint.initial_values")));
  }
  std::ofstream(job_.checkpoint.initial_values) << "of a model";
  EXPECT_THAT(CheckCheckpoints(job_, {}), IsOk());
}

TEST_F(JobChecksTest, AJobThatGoesOnNeedsNoInitialValues) {
  job_.train_steps = 100;
  job_.checkpoint.initial_values = directory_.Join("nosuch");
  job_.checkpoint.directory = directory_.Join("checkpoints");
  std::filesystem::create_directories(job_.checkpoint.directory);
  WriteSample(job_.checkpoint.directory, 50);

  EXPECT_THAT(CheckCheckpoints(job_, {}), IsOk());
  EXPECT_THAT(CheckCheckpoints(job_, {.step = 50}), IsOk());
  EXPECT_THAT(CheckCheckpoints(job_, {.step = Beginning::kFresh}),
              StatusIs(kInvalid, HasSubstr("checkpoint.initial_values")));
}

TEST_F(JobChecksTest, ADirectoryOfSummariesThatCannotBeIsRefused) {
  EXPECT_THAT(CheckSummaries(job_), IsOk());
  job_.summary.directory = directory_.Join("new/deep");
  EXPECT_THAT(CheckSummaries(job_), IsOk());
  EXPECT_FALSE(std::filesystem::exists(directory_.Join("new")));
  std::ofstream(directory_.Join("file")) << "no folder";
  job_.summary.directory = directory_.Join("file/s");
  EXPECT_THAT(CheckSummaries(job_),
              StatusIs(kInvalid, AllOf(HasSubstr("summary.directory: "),
                                       HasSubstr(job_.summary.directory))));
}

TEST_F(JobChecksTest, ADirectoryThatARunningJobHasIsRefused) {
  job_.checkpoint.directory = directory_.Join("checkpoints");
  const auto owner = DirectoryOwner::Take(job_.checkpoint.directory, "bible-1");
  ASSERT_THAT(owner, IsOk());

  EXPECT_THAT(CheckCheckpoints(job_, {}),
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
}  // namespace lockstep::cli
