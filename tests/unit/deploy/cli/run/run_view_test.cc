#include "deploy/cli/run/run_view.h"

#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/pseudo_terminal.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

JobStatus Training(int64_t step) {
  return {.state = JobState::kTraining,
          .step = step,
          .train_steps = 100,
          .loss = 0.5};
}

class RunViewTest : public ::testing::Test {
 protected:
  RunViewTest() { EXPECT_EQ(pipe(pipe_), 0); }
  ~RunViewTest() override {
    for (const int fd : pipe_) close(fd);
  }

  std::string Shown() const { return pseudo_.Shown(); }
  std::string Piped() const { return testing::ReadSoFar(pipe_[0]); }

  const testing::PseudoTerminal pseudo_{40};
  int pipe_[2] = {-1, -1};
};

TEST_F(RunViewTest, ATerminalShowsTheStepAndWhatTheSignsMean) {
  Terminal terminal(pseudo_.inside(), "1", "xterm");
  RunView view(terminal, At(0));

  view.OnStatus(Training(0), At(0));
  view.OnStatus(Training(10), At(1));
  view.Refresh(At(1));

  EXPECT_EQ(Shown(), std::string(StatusLine::kLegend) +
                         "\r\n\r\x1b[Kstep 10/100  loss 0.5000  ETA 0:09");
}

TEST_F(RunViewTest, ANoticeIsPrintedOnce) {
  Terminal terminal(pipe_[1], nullptr, "xterm");
  RunView view(terminal, At(0));
  JobStatus status = {.state = JobState::kStarting};

  status.notices = {{7, "resumed\x1b"}};
  view.OnStatus(status, At(0));
  status.notices.push_back({9, "no space"});
  view.OnStatus(status, At(1));
  view.OnStatus(status, At(2));

  EXPECT_EQ(Piped(), "resumed?\nno space\n");
}

TEST_F(RunViewTest, NoticesOfAChiefWhoseClockWasSetBackArePrintedOnce) {
  Terminal terminal(pipe_[1], nullptr, "xterm");
  RunView view(terminal, At(0));
  JobStatus status = {.state = JobState::kStarting};

  status.notices = {{900, "no space"}};
  view.OnStatus(status, At(0));
  status.notices = {{7, "resumed"}, {8, "a mirror is away"}};
  view.OnStatus(status, At(1));
  view.OnStatus(status, At(2));

  EXPECT_EQ(Piped(), "no space\nresumed\na mirror is away\n");
}

TEST_F(RunViewTest, APipeGetsLinesNowAndThen) {
  Terminal terminal(pipe_[1], nullptr, "xterm");
  RunView view(terminal, At(0));

  for (int tick = 0; tick <= 30; ++tick) {
    view.OnStatus(Training(tick), At(tick / 5.0));
    view.Refresh(At(tick / 5.0));
  }

  EXPECT_EQ(Piped(),
            "training starts: step 0 of 100, 0 workers\n"
            "step 25 of 100, loss 0.5000, ETA 0:15\n");
}

// A terminal of 40 columns.
TEST_F(RunViewTest, APauseShowsAndCountsForNoEstimate) {
  Terminal terminal(pseudo_.inside(), "1", "xterm");
  RunView view(terminal, At(0));
  view.OnStatus(Training(0), At(0));
  view.OnStatus(Training(10), At(1));
  JobStatus paused = Training(10);
  paused.settings.paused = true;

  view.OnStatus(paused, At(2));
  view.Refresh(At(2));
  EXPECT_THAT(Shown(), HasSubstr("\x1b[Kpaused  step 10/100  loss 0.5000"));

  view.OnStatus(Training(10), At(100));
  view.OnStatus(Training(20), At(101));
  view.Refresh(At(101));
  EXPECT_THAT(Shown(), HasSubstr("ETA 0:08"));
}

TEST_F(RunViewTest, AChiefThatNeverAnsweredShows) {
  Terminal terminal(pseudo_.inside(), "1", "xterm");
  RunView view(terminal, At(0));

  view.Refresh(At(1));
  EXPECT_THAT(Shown(), HasSubstr("starting"));
  view.Refresh(At(4));

  EXPECT_THAT(Shown(), HasSubstr("starting: the chief has not answered y~"));
}

TEST_F(RunViewTest, AChiefThatFellSilentIsToldInPlainLinesToo) {
  Terminal terminal(pipe_[1], nullptr, "xterm");
  RunView view(terminal, At(0));
  view.OnStatus(Training(7), At(0));
  view.Refresh(At(0));
  Piped();

  for (int second = 1; second <= 11; ++second) view.Refresh(At(second));

  EXPECT_EQ(Piped(),
            "the chief has not answered for 5.0 s; it was at step 7 of 100\n"
            "the chief has not answered for 10 s; it was at step 7 of 100\n");
}

TEST_F(RunViewTest, AChiefThatIsDoneNeedNotAnswer) {
  Terminal terminal(pipe_[1], nullptr, "xterm");
  RunView view(terminal, At(0));
  JobStatus done = Training(100);
  done.state = JobState::kDone;

  view.OnStatus(done, At(0));
  view.Refresh(At(60));

  EXPECT_EQ(Piped(), "");
  ASSERT_TRUE(view.status().has_value());
  EXPECT_EQ(view.status()->step, 100);
}

}  // namespace
}  // namespace lockstep::cli
