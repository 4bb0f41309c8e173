#include "common/checkpoint/checkpoint_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/step_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/sample_checkpoint.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"
#include "tests/unit/common/checkpoint/unprivileged.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CheckpointStoreTest : public ::testing::Test {
 protected:
  void WriteSteps(const std::vector<int64_t>& steps) {
    for (int64_t step : steps) {
      auto writer = store_.Begin(step, SampleTensors());
      ASSERT_OK(writer);
      ASSERT_NO_FATAL_FAILURE(FillSample(**writer, step));
      ASSERT_OK((*writer)->Commit(SampleManifest()));
    }
  }
  std::string FileOf(int64_t step, const std::string& file) const {
    return absl::StrCat(store_.directory(), "/", StepDirectoryName(step), "/",
                        file);
  }
  void Damage(int64_t step) { fs::resize_file(FileOf(step, kModelFile), 10); }
  std::vector<int64_t> Steps() const {
    auto steps = ListStepDirectories(store_.directory());
    EXPECT_OK(steps);
    return steps.value_or(std::vector<int64_t>{});
  }
  std::vector<std::string> Asides() const {
    std::vector<std::string> asides;
    for (const auto& entry : fs::directory_iterator(store_.directory())) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, ".tmp-")) asides.push_back(name);
    }
    return asides;
  }
  // Starts a child process that dies in the middle of writing a checkpoint.
  void DieWhileWriting(int64_t step) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto writer = store_.Begin(step, SampleTensors());
      _exit(writer.ok() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }

  ScratchDirectory scratch_;
  const CheckpointStore store_{scratch_ / "made/on/demand"};
};

TEST_F(CheckpointStoreTest, MissingDirectoryIsAnEmptyStoreAndStaysMissing) {
  auto latest = store_.Latest();
  ASSERT_OK(latest);
  EXPECT_EQ(latest->manifest, std::nullopt);
  EXPECT_THAT(latest->warnings, IsEmpty());

  EXPECT_THAT(store_.Prune(1), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

TEST_F(CheckpointStoreTest, LatestIsTheHighestStepNotTheLastWritten) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 123456789, 20}));

  auto latest = store_.Latest();

  ASSERT_OK(latest);
  ASSERT_TRUE(latest->manifest.has_value());
  EXPECT_EQ(latest->manifest->global_step, 123456789);
  EXPECT_THAT(latest->warnings, IsEmpty());
}

TEST_F(CheckpointStoreTest, TheNewestSoundOneIsOpenedIfThereIsOne) {
  EXPECT_THAT(store_.OpenLatest(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("give the checkpoint.directory")));
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  Damage(20);

  const auto checkpoint = store_.OpenLatest();

  ASSERT_OK(checkpoint);
  EXPECT_EQ(checkpoint->manifest().global_step, 10);
}

TEST_F(CheckpointStoreTest, DamageOfTheOnlyOnesIsNotTakenForTheirAbsence) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  Damage(10);
  Damage(20);

  EXPECT_THAT(store_.OpenLatest(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("none of the 2 checkpoints"),
                             HasSubstr(FileOf(20, kModelFile)))));
}

TEST_F(CheckpointStoreTest, DamagedCheckpointIsPassedOverWithAWarning) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30}));
  Damage(20);
  Damage(30);

  auto latest = store_.Latest();

  ASSERT_OK(latest);
  ASSERT_TRUE(latest->manifest.has_value());
  EXPECT_EQ(latest->manifest->global_step, 10);
  EXPECT_THAT(latest->warnings,
              ElementsAre(AllOf(HasSubstr(FileOf(30, kModelFile)),
                                HasSubstr("has 10 bytes")),
                          HasSubstr(FileOf(20, kModelFile))));
}

TEST_F(CheckpointStoreTest, NewestOfANewerFormatIsNotPassedOver) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  WriteText(FileOf(20, kManifestFile), R"({"format_version": 2})");

  EXPECT_THAT(store_.Latest(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("format_version is 2")));
}

TEST_F(CheckpointStoreTest, DirectorySetAsideIsNoCheckpointAndStays) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  EXPECT_THAT(store_.SetAside(20, "damaged-"),
              IsOkAndHolds(store_.directory() + "/damaged-step-00000020"));
  ASSERT_NO_FATAL_FAILURE(WriteSteps({20}));

  EXPECT_THAT(store_.SetAside(20, "damaged-"),
              IsOkAndHolds(store_.directory() + "/damaged-step-00000020-2"));

  EXPECT_THAT(Steps(), ElementsAre(10));
  ASSERT_OK(store_.Prune(1));
  EXPECT_TRUE(
      fs::exists(store_.directory() + "/damaged-step-00000020/" + kModelFile));
  EXPECT_THAT(
      store_.SetAside(20, "damaged-"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot set it aside")));
}

TEST_F(CheckpointStoreTest, ProcessThatDiesWhileWritingLeavesNoCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));
  ASSERT_NO_FATAL_FAILURE(DieWhileWriting(20));
  ASSERT_THAT(Asides(), SizeIs(1));

  auto latest = store_.Latest();
  ASSERT_OK(latest);
  EXPECT_EQ(latest->manifest->global_step, 10);
  EXPECT_THAT(latest->warnings, IsEmpty());

  ASSERT_NO_FATAL_FAILURE(WriteSteps({20}));
  ASSERT_OK(store_.Prune(5));
  EXPECT_THAT(Asides(), IsEmpty());
  EXPECT_THAT(Steps(), ElementsAre(10, 20));
}

TEST_F(CheckpointStoreTest, PruneSparesACheckpointInTheMaking) {
  auto writer = store_.Begin(10, SampleTensors());
  ASSERT_OK(writer);
  ASSERT_NO_FATAL_FAILURE(FillSample(**writer, 10));

  ASSERT_OK(store_.Prune(1));

  EXPECT_OK((*writer)->Commit(SampleManifest()));
  EXPECT_OK(store_.Verify(10));
}

TEST_F(CheckpointStoreTest, RemovedCheckpointIsNotCompletedByAWriterThatHung) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));
  auto hung = store_.Begin(20, SampleTensors());
  ASSERT_OK(hung);
  ASSERT_NO_FATAL_FAILURE(FillSample(**hung, 20));

  ASSERT_OK(store_.RemoveUnfinished());

  EXPECT_FALSE((*hung)->Commit(SampleManifest()).ok());
  EXPECT_THAT(Steps(), ElementsAre(10));
  EXPECT_THAT(Asides(), IsEmpty());
}

TEST_F(CheckpointStoreTest, PruneKeepsTheNewest) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30, 40}));

  EXPECT_THAT(store_.Prune(2), IsOkAndHolds(ElementsAre(10, 20)));
  EXPECT_THAT(Steps(), ElementsAre(30, 40));
  EXPECT_THAT(store_.Prune(2), IsOkAndHolds(IsEmpty()));
}

TEST_F(CheckpointStoreTest, AsideThatCannotBeRemovedDoesNotKeepOldOnes) {
  const Unprivileged user(scratch_.path());
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30, 40, 50, 60, 70}));
  const std::string aside = store_.directory() + "/.tmp-step-00000005-0";
  fs::create_directory(aside);
  WriteText(aside + "/f", "x");
  fs::permissions(aside, fs::perms::owner_read | fs::perms::owner_exec);

  EXPECT_THAT(store_.Prune(5),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(aside)));

  EXPECT_THAT(Steps(), ElementsAre(30, 40, 50, 60, 70));
  fs::permissions(aside, fs::perms::owner_all);
  EXPECT_THAT(store_.Prune(5), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Asides(), IsEmpty());
}

TEST_F(CheckpointStoreTest, DamagedOnesDoNotCountAsKept) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30, 40}));
  Damage(10);
  Damage(40);

  EXPECT_THAT(store_.Prune(1), IsOkAndHolds(ElementsAre(10, 20)));
  EXPECT_THAT(Steps(), ElementsAre(30, 40));
}

TEST_F(CheckpointStoreTest, NewestCompleteOneIsNeverPruned) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  Damage(20);

  EXPECT_THAT(store_.Prune(1), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(store_.Prune(0), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("keep is 0")));
  EXPECT_OK(store_.Verify(10));
}

TEST_F(CheckpointStoreTest, CheckpointOfANewerFormatIsNotPruned) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  WriteText(FileOf(10, kManifestFile), R"({"format_version": 2})");

  EXPECT_THAT(store_.Prune(1), IsOkAndHolds(IsEmpty()));
}

TEST_F(CheckpointStoreTest, SoundCheckpointIsVerified) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));

  EXPECT_OK(store_.Verify(10));
  EXPECT_THAT(store_.Verify(11), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointStoreTest, OneFlippedBitOfDataIsFoundByVerify) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));
  const std::string path = FileOf(10, kModelFile);
  FlipBit(path, fs::file_size(path) - 1);

  EXPECT_THAT(store_.Verify(10),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(path), HasSubstr("sha256"),
                             HasSubstr("use another"))));
}

TEST_F(CheckpointStoreTest, OpenedCheckpointHasItsNumbers) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));

  auto reader = store_.Open(10);

  ASSERT_OK(reader);
  std::vector<float> values(6);
  ASSERT_OK(reader->Read("hidden1/weights", absl::MakeSpan(values)));
  EXPECT_EQ(values, kSampleWeights);
}

TEST_F(CheckpointStoreTest, SameNumbersMakeTheSameBytes) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));
  const std::string model = ReadText(FileOf(10, kModelFile));
  const std::string optimizer = ReadText(FileOf(10, kOptimizerFile));
  fs::remove_all(store_.directory());

  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));

  EXPECT_EQ(ReadText(FileOf(10, kModelFile)), model);
  EXPECT_EQ(ReadText(FileOf(10, kOptimizerFile)), optimizer);
}

TEST_F(CheckpointStoreTest, ExistingStepIsRefusedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));

  EXPECT_THAT(store_.Begin(10, SampleTensors()),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(CheckpointStoreTest, DirectoryIsTriedWithoutATrace) {
  EXPECT_OK(store_.CheckWritable());
  EXPECT_THAT(scratch_.Names(), IsEmpty());
  fs::create_directories(store_.directory());
  EXPECT_OK(store_.CheckWritable());

  EXPECT_THAT(Asides(), IsEmpty());
  EXPECT_THAT(Steps(), IsEmpty());
  WriteText(scratch_ / "f", "x");
  const CheckpointStore below_a_file(scratch_ / "f/checkpoints");
  EXPECT_THAT(std::string(below_a_file.CheckWritable().message()),
              AllOf(HasSubstr("checkpoint.directory: "),
                    HasSubstr("f/checkpoints"), HasSubstr("name a directory")));
}

TEST_F(CheckpointStoreTest, DirectoryThatCannotBeSyncedIsNotWritable) {
  const Unprivileged user(scratch_.path());
  fs::create_directories(store_.directory());
  // Names can be made in it, but it cannot be opened.
  fs::permissions(store_.directory(),
                  fs::perms::owner_write | fs::perms::owner_exec);

  EXPECT_THAT(store_.CheckWritable(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("checkpoint.directory: ")));

  fs::permissions(store_.directory(), fs::perms::owner_all);
}

TEST_F(CheckpointStoreTest, CheckpointsAreForUserAndGroup) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10}));

  for (const std::string& path :
       {store_.directory(), FileOf(10, ""), FileOf(10, kModelFile),
        FileOf(10, kManifestFile)}) {
    EXPECT_EQ(fs::status(path).permissions() &
                  (fs::perms::others_all | fs::perms::group_write),
              fs::perms::none)
        << path;
  }
}

TEST_F(CheckpointStoreTest, DirectoryThatCannotBeIsAnErrorWithItsPath) {
  WriteText(scratch_ / "f", "x");
  const CheckpointStore below_a_file(scratch_ / "f/checkpoints");

  const auto refused = below_a_file.Begin(1, SampleTensors());

  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("f/checkpoints"));
  EXPECT_THAT(CheckpointStore("").Begin(1, SampleTensors()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
}

}  // namespace
}  // namespace lockstep
