#include "common/checkpoint/whole_checkpoints.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/step_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
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

class WholeCheckpointsTest : public ::testing::Test {
 protected:
  void WriteSteps(const std::vector<int64_t>& steps) {
    for (int64_t step : steps) {
      ASSERT_NO_FATAL_FAILURE(WriteSample(store_.directory(), step));
    }
  }
  std::string FileOf(int64_t step, const std::string& file) const {
    return absl::StrCat(store_.directory(), "/", StepDirectoryName(step), "/",
                        file);
  }
  // Flips a bit of the values, which only the hash detects.
  void FlipLastBit(int64_t step) {
    const std::string path = FileOf(step, kModelFile);
    FlipBit(path, fs::file_size(path) - 1);
  }
  // Makes opening the manifest fail with ELOOP, whose code is that of EIO.
  void MakeUnreadable(int64_t step) {
    const std::string manifest = FileOf(step, kManifestFile);
    fs::rename(manifest, scratch_ / "manifest");
    fs::create_symlink(manifest, manifest);
  }
  void MakeReadable(int64_t step) {
    fs::rename(scratch_ / "manifest", FileOf(step, kManifestFile));
  }
  std::vector<int64_t> Steps() const {
    return ListStepDirectories(store_.directory())
        .value_or(std::vector<int64_t>{});
  }
  // Expects FindNewest() to return this step and this number of damaged ones.
  void ExpectFound(int64_t step, size_t damaged) {
    const auto newest = whole_.FindNewest();
    ASSERT_OK(newest);
    ASSERT_TRUE(newest->reader.has_value());
    EXPECT_EQ(newest->reader->manifest().global_step, step);
    EXPECT_THAT(newest->damaged, SizeIs(damaged));
  }

  ScratchDirectory scratch_;
  const CheckpointStore store_{scratch_.path()};
  testing::ManualClock clock_;
  WholeCheckpoints whole_{store_, clock_};
};

TEST_F(WholeCheckpointsTest, NothingIsFoundWhereThereIsNone) {
  const auto newest = whole_.FindNewest();

  ASSERT_OK(newest);
  EXPECT_FALSE(newest->reader.has_value());
  EXPECT_THAT(newest->damaged, IsEmpty());
}

TEST_F(WholeCheckpointsTest, AnyKindOfDamageLeadsToTheOneBefore) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30, 40, 50, 60}));
  FlipLastBit(20);
  FlipBit(FileOf(30, kModelFile), 12);     // in the header, which is JSON
  FlipBit(FileOf(40, kOptimizerFile), 0);  // the header's length
  fs::remove(FileOf(50, kModelFile));
  fs::remove_all(FileOf(60, ""));
  WriteText(absl::StrCat(store_.directory(), "/", StepDirectoryName(60)), "");

  ExpectFound(10, 5);
}

TEST_F(WholeCheckpointsTest, DamageIsNamedByStepAndReason) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  FlipLastBit(20);

  const auto newest = whole_.FindNewest();

  ASSERT_OK(newest);
  ASSERT_THAT(newest->damaged, SizeIs(1));
  EXPECT_EQ(newest->damaged[0].step, 20);
  EXPECT_THAT(newest->damaged[0].why,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("sha256")));
}

TEST_F(WholeCheckpointsTest, WhereAllAreDamagedThereIsNoBeginningAnew) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  FlipLastBit(10);
  fs::remove(FileOf(20, kOptimizerFile));

  EXPECT_THAT(whole_.FindNewest(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("2 checkpoints and none is whole"),
                             HasSubstr(FileOf(20, kOptimizerFile)),
                             HasSubstr("--fresh"))));
  EXPECT_THAT(Steps(), ElementsAre(10, 20));
}

TEST_F(WholeCheckpointsTest, NewerFormatIsRefusedNotPassedOver) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  WriteText(FileOf(20, kManifestFile), R"({"format_version": 99})");

  EXPECT_THAT(whole_.FindNewest(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("format_version is 99")));
}

TEST_F(WholeCheckpointsTest, FileThatCannotBeExaminedIsNoDamage) {
  const Unprivileged user(scratch_.path());
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  const std::string closed = scratch_ / "closed";
  fs::create_directory(closed);
  fs::rename(FileOf(20, kModelFile), closed + "/model");
  fs::create_symlink(closed + "/model", FileOf(20, kModelFile));
  fs::permissions(closed, fs::perms::none);

  EXPECT_THAT(whole_.FindNewest(), StatusIs(absl::StatusCode::kPermissionDenied,
                                            HasSubstr(FileOf(20, kModelFile))));

  fs::permissions(closed, fs::perms::owner_all);
  ExpectFound(20, 0);
}

TEST_F(WholeCheckpointsTest, ReadThatFailsForAMomentIsNoDamage) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  MakeUnreadable(20);
  EXPECT_THAT(whole_.FindNewest(), StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr(FileOf(20, ""))));
  clock_.Advance(WholeCheckpoints::kReadPatience / 2);
  EXPECT_THAT(whole_.FindNewest(), StatusIs(absl::StatusCode::kUnavailable));
  MakeReadable(20);
  ExpectFound(20, 0);

  // The next failure begins anew.
  MakeUnreadable(20);
  clock_.Advance(WholeCheckpoints::kReadPatience);
  EXPECT_THAT(whole_.FindNewest(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(WholeCheckpointsTest, DiskThatStaysBadLeadsToTheOneBefore) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  MakeUnreadable(20);
  EXPECT_THAT(whole_.FindNewest(), StatusIs(absl::StatusCode::kUnavailable));
  clock_.Advance(WholeCheckpoints::kReadPatience);

  ExpectFound(10, 1);
}

TEST_F(WholeCheckpointsTest, ForgottenOneIsReadAgain) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({20}));
  whole_.FoundDamaged(20, absl::DataLossError("for the test"));

  whole_.Forget(20);

  EXPECT_OK(whole_.Check(20));
}

TEST_F(WholeCheckpointsTest, OlderOneOfANewerFormatIsNoHindrance) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  WriteText(FileOf(10, kManifestFile), R"({"format_version": 99})");

  ExpectFound(20, 0);
}

TEST_F(WholeCheckpointsTest, ACheckpointThatIsTouchedIsReadAgain) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  whole_.Wrote(20, FileMetadata(FileOf(20, "")));
  EXPECT_OK(whole_.Check(20));

  FlipLastBit(20);

  EXPECT_THAT(whole_.Check(20), StatusIs(absl::StatusCode::kDataLoss));
  ExpectFound(10, 1);
}

TEST_F(WholeCheckpointsTest, FileThatIsDamagedBeforeItIsNotedIsReadAgain) {
  auto writer =
      CheckpointWriter::Create(store_.directory(), 20, SampleTensors());
  ASSERT_OK(writer);
  ASSERT_NO_FATAL_FAILURE(FillSample(**writer, 20));
  ASSERT_OK((*writer)->Commit(SampleManifest()));
  FlipLastBit(20);

  whole_.Wrote(20, (*writer)->files());

  EXPECT_THAT(whole_.Check(20), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(WholeCheckpointsTest, CheckpointThatWasWrittenHereIsNotReadAgain) {
  auto writer =
      CheckpointWriter::Create(store_.directory(), 20, SampleTensors());
  ASSERT_OK(writer);
  ASSERT_NO_FATAL_FAILURE(FillSample(**writer, 20));
  ASSERT_OK((*writer)->Commit(SampleManifest()));

  EXPECT_EQ((*writer)->files(), FileMetadata(FileOf(20, "")));
}

// Damage that only a read could find shows that there was none.
TEST_F(WholeCheckpointsTest, WhatIsNotedWithItsFilesIsNotReadAgain) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));
  FlipLastBit(20);

  whole_.Wrote(20, FileMetadata(FileOf(20, "")));
  EXPECT_OK(whole_.Check(20));
  ExpectFound(20, 0);

  whole_.Forget(20);
  EXPECT_THAT(whole_.Check(20), StatusIs(absl::StatusCode::kDataLoss));
  ExpectFound(10, 1);
}
TEST_F(WholeCheckpointsTest, WhatARestoreFoundDamagedStaysSo) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20}));

  whole_.FoundDamaged(20, absl::DataLossError("keys do not ascend"));

  ExpectFound(10, 1);
}

TEST_F(WholeCheckpointsTest, OnlyWholeOnesCountAsKept) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30, 40}));
  FlipLastBit(30);
  FlipLastBit(40);

  EXPECT_THAT(whole_.Prune(1), IsOkAndHolds(ElementsAre(10)));
  EXPECT_THAT(Steps(), ElementsAre(20, 30, 40));
}

// A job writes checkpoints as long as it runs.
TEST_F(WholeCheckpointsTest, RemovedOnesTakeNoMemory) {
  for (int64_t step = 1; step <= 10; ++step) {
    ASSERT_NO_FATAL_FAILURE(WriteSteps({step}));
    whole_.Wrote(step, FileMetadata(FileOf(step, "")));
    ASSERT_OK(whole_.Prune(2));
    EXPECT_LE(whole_.num_known(), 2u) << step;
  }
  EXPECT_THAT(Steps(), ElementsAre(9, 10));
  fs::remove_all(FileOf(9, ""));
  ASSERT_OK(whole_.Prune(2));
  EXPECT_EQ(whole_.num_known(), 1u);

  MakeUnreadable(10);
  EXPECT_THAT(whole_.Check(10), StatusIs(absl::StatusCode::kUnavailable));
  fs::remove_all(FileOf(10, ""));
  ASSERT_OK(whole_.Prune(2));

  EXPECT_EQ(whole_.num_known(), 0u);
}

TEST_F(WholeCheckpointsTest, TheLastThatIsWholeIsNeverPruned) {
  ASSERT_NO_FATAL_FAILURE(WriteSteps({10, 20, 30}));
  FlipLastBit(20);
  FlipLastBit(30);

  EXPECT_THAT(whole_.Prune(1), IsOkAndHolds(IsEmpty()));
  EXPECT_OK(whole_.Check(10));
}

}  // namespace
}  // namespace lockstep
