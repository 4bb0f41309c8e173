#include "chief/checkpoint/job_checkpoints.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/directory_owner.h"
#include "common/checkpoint/step_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/sample_checkpoint.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"
#include "tests/unit/common/checkpoint/unprivileged.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobCheckpointsTest : public ::testing::Test {
 protected:
  JobCheckpoints Make(const std::string& directory) {
    CheckpointConfig config;
    config.directory = directory;
    return JobCheckpoints(
        config, [this](const std::string& text) { notices_.push_back(text); });
  }
  void Write(int64_t step) {
    ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), step));
  }
  void Damage(int64_t step) {
    for (const auto& entry : std::filesystem::directory_iterator(
             scratch_ / StepDirectoryName(step))) {
      if (entry.path().extension() != ".safetensors") continue;
      std::filesystem::remove(entry.path());
    }
  }

  ScratchDirectory scratch_;
  std::vector<std::string> notices_;
};

TEST_F(JobCheckpointsTest, JobWithoutADirectoryHasNone) {
  JobCheckpoints checkpoints = Make("");
  EXPECT_TRUE(checkpoints.none());
  EXPECT_OK(checkpoints.Own("job"));
  EXPECT_OK(checkpoints.Prepare({.step = Beginning::kFresh}));
  EXPECT_THAT(checkpoints.LatestStep(), IsOkAndHolds(-1));
  EXPECT_THAT(checkpoints.FindNewest(), IsOkAndHolds(-1));
  EXPECT_FALSE(checkpoints.TakeNewest().has_value());
}

TEST_F(JobCheckpointsTest, NewestIsFoundAndTakenOnce) {
  Write(10);
  Write(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_THAT(checkpoints.LatestStep(), IsOkAndHolds(20));
  EXPECT_THAT(checkpoints.FindNewest(), IsOkAndHolds(20));
  EXPECT_TRUE(checkpoints.TakeNewest().has_value());
  EXPECT_FALSE(checkpoints.TakeNewest().has_value());
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(JobCheckpointsTest, NewestHasTheTimeOfItsManifest) {
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_EQ(checkpoints.SavedAt(-1), std::nullopt);
  Write(10);
  Write(20);
  EXPECT_EQ(checkpoints.SavedAt(20),
            absl::FromUnixMillis(SampleManifest().saved_at_unix_ms));
  EXPECT_EQ(checkpoints.SavedAt(10), std::nullopt);
}

TEST_F(JobCheckpointsTest, ChiefThatHungCompletesNoneOnceTheNewestIsFound) {
  Write(10);
  const CheckpointStore store(scratch_.path());
  auto hung = store.Begin(20, SampleTensors());
  ASSERT_OK(hung);
  ASSERT_NO_FATAL_FAILURE(FillSample(**hung, 20));
  JobCheckpoints checkpoints = Make(scratch_.path());

  EXPECT_THAT(checkpoints.FindNewest(), IsOkAndHolds(10));

  EXPECT_FALSE((*hung)->Commit(SampleManifest()).ok());
  EXPECT_THAT(checkpoints.LatestStep(), IsOkAndHolds(10));
}

TEST_F(JobCheckpointsTest, DamagedOneIsSetAsideAndNotified) {
  Write(10);
  Write(20);
  Damage(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_THAT(checkpoints.FindNewest(), IsOkAndHolds(10));
  EXPECT_THAT(notices_,
              ElementsAre(HasSubstr("the checkpoint of step 20 is damaged")));
  EXPECT_THAT(checkpoints.LatestStep(), IsOkAndHolds(10));
}

TEST_F(JobCheckpointsTest, NothingIsWrittenWhereAnotherJobHasCome) {
  JobCheckpoints newer = Make(scratch_.path());
  {
    JobCheckpoints older = Make(scratch_.path());
    ASSERT_OK(older.Own("job"));
    ASSERT_OK(newer.Own("job"));
  }
  JobCheckpoints other = Make(scratch_.path());
  ASSERT_OK(other.Own("other"));

  EXPECT_THAT(newer.Save({}, {}, {}, {}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("in use by the job other,")));

  EXPECT_THAT(scratch_.Names(), ElementsAre(".owner"));
}

TEST_F(JobCheckpointsTest, EndIsFoundOnlyIfItIsWhole) {
  Write(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_EQ(checkpoints.WholeFrom(21), std::nullopt);
  EXPECT_EQ(checkpoints.WholeFrom(15), 20);
  Damage(20);
  EXPECT_EQ(checkpoints.WholeFrom(15), std::nullopt);
}

TEST_F(JobCheckpointsTest, OneThatIsNotWholeMakesRoomForAnother) {
  Write(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_THAT(checkpoints.CheckOrSetAside(20), IsOkAndHolds(true));
  Damage(20);
  EXPECT_THAT(checkpoints.CheckOrSetAside(20), IsOkAndHolds(false));
  Write(20);
  EXPECT_THAT(checkpoints.CheckOrSetAside(20), IsOkAndHolds(true));
  std::filesystem::remove_all(scratch_ / StepDirectoryName(20));
  EXPECT_THAT(checkpoints.CheckOrSetAside(20), IsOkAndHolds(false));
}

TEST_F(JobCheckpointsTest, WholeOneCountsOnlyOnceItsNameIsOnTheDisk) {
  using std::filesystem::perms;
  const Unprivileged user(scratch_.path());
  Write(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  // Files can be opened, but the directory cannot, for a sync.
  std::filesystem::permissions(scratch_.path(),
                               perms::owner_write | perms::owner_exec);

  EXPECT_THAT(checkpoints.CheckOrSetAside(20),
              StatusIs(absl::StatusCode::kPermissionDenied));

  std::filesystem::permissions(scratch_.path(), perms::owner_all);
  EXPECT_THAT(checkpoints.CheckOrSetAside(20), IsOkAndHolds(true));
}

TEST_F(JobCheckpointsTest, RestoreThatCouldNotReadIsRepeated) {
  Write(10);
  Write(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  ASSERT_THAT(checkpoints.FindNewest(), IsOkAndHolds(20));

  EXPECT_THAT(checkpoints.RestoreFailed(20, absl::UnknownError("read")),
              StatusIs(absl::StatusCode::kUnavailable, "read"));
  EXPECT_THAT(checkpoints.FindNewest(), IsOkAndHolds(20));
  EXPECT_THAT(checkpoints.RestoreFailed(20, absl::DataLossError("keys")),
              StatusIs(absl::StatusCode::kUnavailable, "keys"));
  EXPECT_THAT(checkpoints.FindNewest(), IsOkAndHolds(10));
  EXPECT_THAT(checkpoints.RestoreFailed(10, absl::AbortedError("epoch 2")),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(JobCheckpointsTest, OneThatCannotBeJudgedStaysWhereItIs) {
  Write(20);
  WriteText(scratch_ / StepDirectoryName(20) + "/manifest.json",
            R"({"format_version": 99})");
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_THAT(checkpoints.CheckOrSetAside(20),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(scratch_.Names(), ElementsAre(StepDirectoryName(20)));
}

TEST_F(JobCheckpointsTest, NewerOnesThanTheBeginningAreSetAside) {
  Write(10);
  Write(20);
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_OK(checkpoints.Prepare({.step = 10}));
  EXPECT_THAT(
      notices_,
      ElementsAre(HasSubstr("the checkpoint of step 20 was set aside")));
  EXPECT_THAT(checkpoints.LatestStep(), IsOkAndHolds(10));
}

TEST_F(JobCheckpointsTest, RemovedDirectoryIsToldOnceAndHeldAgain) {
  const std::string directory = scratch_ / "checkpoints";
  JobCheckpoints checkpoints = Make(directory);
  ASSERT_OK(checkpoints.Own("job-1"));
  JobSnapshot snapshot;
  snapshot.scalars = {1};
  // Fails for the scalar, which has no name, after the directory is held.
  const auto save = [&] {
    EXPECT_THAT(checkpoints.Save(SampleManifest(), {}, snapshot, {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  };
  save();
  EXPECT_THAT(notices_, IsEmpty());
  std::filesystem::remove_all(directory);

  save();
  save();

  EXPECT_THAT(notices_,
              ElementsAre(AllOf(HasSubstr(directory), HasSubstr("removed"))));
  EXPECT_EQ(DirectoryOwner::Running(directory), "job-1");
}

TEST_F(JobCheckpointsTest, BeginningThatIsNotThereIsRefused) {
  Write(10);
  JobCheckpoints checkpoints = Make(scratch_.path());
  EXPECT_THAT(checkpoints.Prepare({.step = 7}).message(),
              HasSubstr("--from 7: "));
  EXPECT_THAT(checkpoints.LatestStep(), IsOkAndHolds(10));
}

}  // namespace
}  // namespace lockstep::chief
