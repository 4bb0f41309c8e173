#include "chief/job/last_checkpoint.h"

#include <variant>

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

class LastCheckpointTest : public ::testing::Test {
 protected:
  LastCheckpointTest() {
    job_.checkpoint.directory = "/checkpoints";
    checkpoints_.Begin(0, -1, now_);
  }
  std::optional<absl::Status> Close(const absl::Status& status) {
    return last_.OnTokensClosed({1, status}, out_);
  }

  std::optional<absl::Status> Written(const absl::Status& status) {
    checkpoints_.OnBegun({7, absl::OkStatus()}, true, now_, out_);
    checkpoints_.OnDone({7, status}, now_, out_);
    return last_.OnCheckpoint(out_);
  }

  JobConfig job_;
  absl::Time now_ = absl::UnixEpoch();
  JobActions out_;
  CheckpointDriver checkpoints_{job_};
  LastCheckpoint last_{job_, checkpoints_};
};

TEST_F(LastCheckpointTest, AttemptEndsWithTheCheckpointsResult) {
  last_.Try(7, 1, 1, out_);
  EXPECT_FALSE(Close(absl::OkStatus()).has_value());
  EXPECT_TRUE(last_.writes());
  checkpoints_.OnBegun({7, absl::OkStatus()}, true, now_, out_);
  EXPECT_FALSE(last_.OnCheckpoint(out_).has_value());
  checkpoints_.OnDone({7, absl::DataLossError("x")}, now_, out_);
  EXPECT_EQ(last_.OnCheckpoint(out_), absl::DataLossError("x"));
  EXPECT_FALSE(last_.writes());
}

TEST_F(LastCheckpointTest, TokensThatCannotBeClosedEndTheAttempt) {
  last_.Try(7, 1, 1, out_);
  EXPECT_EQ(Close(absl::UnavailableError("x")), absl::UnavailableError("x"));
  EXPECT_FALSE(Close(absl::OkStatus()).has_value());
}

TEST_F(LastCheckpointTest, AnswerOfAnEarlierRoundIsOfNoInterest) {
  last_.Try(7, 1, 2, out_);
  EXPECT_FALSE(Close(absl::UnavailableError("x")).has_value());
}

TEST_F(LastCheckpointTest, SavedStepIsCheckedAndWrittenAnewIfItIsDamaged) {
  checkpoints_.Begin(7, 7, now_);
  last_.Try(7, 1, 1, out_);
  EXPECT_FALSE(Close(absl::OkStatus()).has_value());
  EXPECT_FALSE(last_.writes());
  EXPECT_FALSE(last_.OnSavedChecked({7, false}, out_).has_value());
  EXPECT_TRUE(last_.writes());
}

TEST_F(LastCheckpointTest, CheckpointThatIsThereAlreadyIsChecked) {
  last_.Try(7, 1, 1, out_);
  EXPECT_FALSE(Close(absl::OkStatus()).has_value());
  EXPECT_FALSE(Written(absl::AlreadyExistsError("x")).has_value());
  ASSERT_TRUE(std::holds_alternative<CheckSaved>(out_.back()));
  EXPECT_EQ(std::get<CheckSaved>(out_.back()).step, 7);
  EXPECT_EQ(last_.OnSavedChecked({7, true}, out_), absl::OkStatus());
  EXPECT_EQ(checkpoints_.saved_step(), 7);
}

TEST_F(LastCheckpointTest, CheckpointThatIsThereAgainEndsTheAttempt) {
  last_.Try(7, 1, 1, out_);
  EXPECT_FALSE(Close(absl::OkStatus()).has_value());
  EXPECT_FALSE(Written(absl::AlreadyExistsError("x")).has_value());
  EXPECT_FALSE(last_.OnSavedChecked({7, false}, out_).has_value());
  EXPECT_TRUE(last_.writes());
  EXPECT_EQ(Written(absl::AlreadyExistsError("x")),
            absl::AlreadyExistsError("x"));
}

TEST_F(LastCheckpointTest, SavedStepThatCannotBeJudgedIsNotWrittenAnew) {
  checkpoints_.Begin(7, 7, now_);
  last_.Try(7, 1, 1, out_);
  EXPECT_FALSE(Close(absl::OkStatus()).has_value());
  EXPECT_EQ(last_.OnSavedChecked({7, absl::UnavailableError("x")}, out_),
            absl::UnavailableError("x"));
  EXPECT_FALSE(last_.writes());
}

}  // namespace
}  // namespace lockstep::chief
