#include "chief/job/checkpoint_driver.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

class CheckpointDriverTest : public ::testing::Test {
 protected:
  CheckpointDriverTest() {
    job_.checkpoint.directory = "/checkpoints";
    job_.checkpoint.every_steps = 2;
    driver_.Begin(0, -1, now_);
  }
  bool Starts(int64_t step) {
    out_.clear();
    driver_.MaybeStart(step, 1, now_, out_);
    return driver_.copying() && !out_.empty();
  }

  JobConfig job_;
  absl::Time now_ = absl::UnixEpoch();
  JobActions out_;
  CheckpointDriver driver_{job_};
};

TEST_F(CheckpointDriverTest, IsBegunWhenItIsDue) {
  EXPECT_FALSE(Starts(1));
  EXPECT_TRUE(driver_.IsToBegin(2, now_));
  EXPECT_TRUE(Starts(2));
}

TEST_F(CheckpointDriverTest, OneAtATime) {
  Starts(2);
  driver_.OnBegun({2, absl::OkStatus()}, false, now_, out_);
  EXPECT_TRUE(driver_.busy());
  EXPECT_FALSE(driver_.IsToBegin(4, now_));
  EXPECT_FALSE(Starts(4));
  driver_.OnDone({2, absl::OkStatus()}, now_, out_);
  EXPECT_EQ(driver_.saved_step(), 2);
  EXPECT_TRUE(Starts(4));
}

TEST_F(CheckpointDriverTest,
       TimedCheckpointThatIsWrittenIsNotMissedAtEachStep) {
  job_.checkpoint.every_steps = 0;
  job_.checkpoint.every = absl::Seconds(10);
  driver_.Begin(0, -1, now_);
  now_ += absl::Seconds(10);
  EXPECT_TRUE(Starts(1));
  driver_.OnBegun({1, absl::OkStatus()}, false, now_, out_);
  for (int64_t step = 2; step < 11; ++step) {
    now_ += absl::Seconds(1);
    EXPECT_FALSE(Starts(step));
    EXPECT_TRUE(out_.empty()) << step;
  }
  // The next one is due, and left out: one line, not one for each step.
  now_ += absl::Seconds(1);
  EXPECT_FALSE(Starts(11));
  EXPECT_EQ(out_.size(), 1);
  EXPECT_FALSE(Starts(12));
  EXPECT_TRUE(out_.empty());
}

TEST_F(CheckpointDriverTest, WishForASavedStepIsFulfilled) {
  Starts(2);
  driver_.OnBegun({2, absl::OkStatus()}, false, now_, out_);
  driver_.OnDone({2, absl::OkStatus()}, now_, out_);
  driver_.Want();
  EXPECT_FALSE(Starts(2));
  EXPECT_FALSE(driver_.IsToBegin(3, now_));
}

TEST_F(CheckpointDriverTest, WishStaysWhileOneIsWritten) {
  Starts(2);
  driver_.OnBegun({2, absl::OkStatus()}, false, now_, out_);
  driver_.Want();
  EXPECT_FALSE(Starts(3));
  driver_.OnDone({2, absl::OkStatus()}, now_, out_);
  EXPECT_TRUE(Starts(3));
}

TEST_F(CheckpointDriverTest, FailureIsTheCheckpointsTrouble) {
  const absl::Status full = absl::ResourceExhaustedError("no room");
  Starts(2);
  driver_.OnBegun({2, absl::OkStatus()}, false, now_, out_);
  out_.clear();
  driver_.OnDone({2, full}, now_, out_);

  EXPECT_EQ(driver_.last_result(), full);
  std::string trouble;
  for (const JobAction& action : out_) {
    const auto* report = std::get_if<JobReport>(&action);
    if (report == nullptr) continue;
    const auto* troubled = std::get_if<CheckpointTroubled>(report);
    if (troubled != nullptr) trouble = troubled->why;
  }
  EXPECT_EQ(trouble, "step 2: no room");
}

TEST_F(CheckpointDriverTest, FailureSaysWhetherThereIsOneBeforeIt) {
  const auto line = [this](int64_t step, const absl::Status& written) {
    Starts(step);
    driver_.OnBegun({step, absl::OkStatus()}, false, now_, out_);
    out_.clear();
    driver_.OnDone({step, written}, now_, out_);
    const auto* said = std::get_if<Say>(&out_.front());
    return said == nullptr ? "" : said->text;
  };
  const absl::Status failed = absl::UnavailableError("gone");
  EXPECT_EQ(line(2, failed),
            "the checkpoint of step 2 failed, and there is none before it: "
            "gone");
  line(4, absl::OkStatus());
  EXPECT_EQ(line(6, failed),
            "the checkpoint of step 6 failed, the one before stays: gone");
}

TEST_F(CheckpointDriverTest, FailureToCopyIsToldUnlessItIsLeftToTheCaller) {
  const absl::Status failed = absl::UnavailableError("gone");
  Starts(2);
  out_.clear();
  driver_.OnBegun({2, failed}, /*quiet=*/true, now_, out_);
  EXPECT_TRUE(out_.empty());
  EXPECT_EQ(driver_.last_result(), failed);
  EXPECT_FALSE(driver_.busy());
  Starts(2);
  out_.clear();
  driver_.OnBegun({2, failed}, /*quiet=*/false, now_, out_);
  EXPECT_FALSE(out_.empty());
}

}  // namespace
}  // namespace lockstep::chief
