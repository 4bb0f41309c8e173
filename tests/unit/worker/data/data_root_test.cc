#include "worker/data/data_root.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::worker {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DataRootTest : public ::testing::Test {
 protected:
  DataRootTest() {
    for (const char* name : {"data", "data2", "other"}) {
      fs::create_directory(dir_.Join(name));
      std::ofstream(dir_.Join(name) + "/file") << "x";
    }
  }

  absl::Status Check(const std::string& text,
                     const std::vector<std::string>& roots) {
    JobConfig job;
    job.data.train_text = text;
    return CheckWorkerFiles(job, roots);
  }

  const testing::TempDir dir_;
};

TEST_F(DataRootTest, WithoutARootAnyFileMayBeNamed) {
  EXPECT_THAT(Check("/etc/hostname", {}), IsOk());
}

TEST_F(DataRootTest, FilesBelowARootMayBeNamed) {
  const std::vector<std::string> roots = {dir_.Join("data"),
                                          dir_.Join("other")};
  EXPECT_THAT(Check(dir_.Join("data/file"), roots), IsOk());
  EXPECT_THAT(Check(dir_.Join("other/file"), roots), IsOk());
  EXPECT_THAT(Check(dir_.Join("data/not/there/yet"), roots), IsOk());
  EXPECT_THAT(Check(dir_.Join("data2/../data/file"), roots), IsOk());
}

TEST_F(DataRootTest, FilesElsewhereAreRefused) {
  const std::vector<std::string> roots = {dir_.Join("data")};
  EXPECT_THAT(Check(dir_.Join("other/file"), roots),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("data.train_text is"),
                             HasSubstr("--data_root " + dir_.Join("data")))));
  EXPECT_FALSE(Check(dir_.Join("data2/file"), roots).ok());
  EXPECT_FALSE(Check(dir_.Join("data/../other/file"), roots).ok());
  EXPECT_FALSE(Check("/etc/hostname", roots).ok());
}

TEST_F(DataRootTest, RootThatDoesNotExistHoldsNothingAndIsNamedAsMissing) {
  const std::string none = dir_.Join("none");
  const std::string data = dir_.Join("data");
  EXPECT_THAT(
      Check(dir_.Join("other/file"), {none, data}),
      StatusIs(absl::StatusCode::kPermissionDenied,
               HasSubstr("--data_root " + none +
                         " (there is no such directory) or " + data + ";")));
  EXPECT_FALSE(Check(none + "/file", {none}).ok());
  EXPECT_THAT(Check(data + "/file", {none, data}), IsOk());
}

// An archive is the file; the name of an array in it leads nowhere.
TEST_F(DataRootTest, ArraysOfArchivesAreWhereTheirFileIs) {
  const std::vector<std::string> roots = {dir_.Join("data")};
  const std::string inside = dir_.Join("data/x.npz:../../y");
  const std::string outside = dir_.Join("other/x.npz:/../../data/y");
  for (std::string DataConfig::*field :
       {&DataConfig::train_images, &DataConfig::train_labels}) {
    JobConfig job;
    job.data.*field = inside;
    EXPECT_THAT(CheckWorkerFiles(job, roots), IsOk());
    job.data.*field = outside;
    EXPECT_FALSE(CheckWorkerFiles(job, roots).ok());
  }
  for (std::string DataConfig::*field :
       {&DataConfig::test_images, &DataConfig::test_labels}) {
    JobConfig job;
    job.data.*field = inside;
    EXPECT_THAT(CheckEvaluatorFiles(job, roots), IsOk());
    job.data.*field = outside;
    EXPECT_FALSE(CheckEvaluatorFiles(job, roots).ok());
  }
}

// A folder may have the name of an archive with a colon behind it.
TEST_F(DataRootTest, PathsThatNameNoArrayAreCheckedWhole) {
  fs::create_directory(dir_.Join("data/x.npz:"));
  std::ofstream(dir_.Join("data/x.npz:/file")) << "x";
  const std::vector<std::string> roots = {dir_.Join("data")};
  EXPECT_THAT(Check(dir_.Join("data/x.npz:/file"), roots), IsOk());
  const std::string outside = dir_.Join("data/x.npz:/../../other/file");
  ASSERT_TRUE(fs::exists(outside));
  const auto refused = StatusIs(absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Check(outside, roots), refused);
  JobConfig files;
  files.data.train_files = {outside};
  EXPECT_THAT(CheckWorkerFiles(files, roots), refused);
  JobConfig test_text;
  test_text.data.test_text = outside;
  EXPECT_THAT(CheckEvaluatorFiles(test_text, roots), refused);
  JobConfig test_files;
  test_files.data.test_files = {outside};
  EXPECT_THAT(CheckEvaluatorFiles(test_files, roots), refused);
  JobConfig checkpoints;
  checkpoints.checkpoint.directory = dir_.Join("data/x.npz:/../../other");
  EXPECT_THAT(CheckEvaluatorFiles(checkpoints, roots), refused);
}

TEST_F(DataRootTest, SymbolicLinksAreFollowed) {
  fs::create_symlink(dir_.Join("other/file"), dir_.Join("data/link"));
  fs::create_directory_symlink(dir_.Join("data"), dir_.Join("root"));
  EXPECT_FALSE(Check(dir_.Join("data/link"), {dir_.Join("data")}).ok());
  EXPECT_THAT(Check(dir_.Join("data/file"), {dir_.Join("root")}), IsOk());
}

TEST_F(DataRootTest, EveryFieldThatNamesAFileIsChecked) {
  const std::vector<std::string> roots = {dir_.Join("data")};
  const std::string file = dir_.Join("other/file");
  for (std::string DataConfig::*field :
       {&DataConfig::train_images, &DataConfig::train_labels,
        &DataConfig::train_text}) {
    JobConfig job;
    job.data.*field = file;
    EXPECT_FALSE(CheckWorkerFiles(job, roots).ok());
  }
  for (std::string DataConfig::*field :
       {&DataConfig::test_images, &DataConfig::test_labels,
        &DataConfig::test_text}) {
    JobConfig job;
    job.data.*field = file;
    EXPECT_FALSE(CheckEvaluatorFiles(job, roots).ok());
  }
  JobConfig job;
  job.data.train_files = {dir_.Join("data/file"), file};
  EXPECT_FALSE(CheckWorkerFiles(job, roots).ok());
  EXPECT_TRUE(CheckEvaluatorFiles(job, roots).ok());
  job.data.test_files = {file};
  EXPECT_FALSE(CheckEvaluatorFiles(job, roots).ok());
  job.data.test_files.clear();
  job.checkpoint.directory = dir_.Join("other");
  EXPECT_FALSE(CheckEvaluatorFiles(job, roots).ok());
  job.data.train_files.clear();
  EXPECT_TRUE(CheckWorkerFiles(job, roots).ok());
}

}  // namespace
}  // namespace lockstep::worker
