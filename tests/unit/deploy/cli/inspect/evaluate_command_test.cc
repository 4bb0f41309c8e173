#include "deploy/cli/inspect/evaluate_command.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/pseudo_terminal.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"
#include "tests/unit/worker/data/files/idx_bytes.h"
#include "tests/unit/worker/scoring/softmax_checkpoint.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::CommandTest;
using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A job with pictures of 1 x 2 in three classes, and its checkpoints.
class EvaluateCommandTest : public CommandTest {
 protected:
  EvaluateCommandTest() {
    Write("job",
          "name: 'job' train_steps: 1 batch_size: 1 model { kind: 'softmax' }"
          " data { train_images: 'elsewhere' train_labels: 'elsewhere'"
          " test_images: '" +
              Path("images") + "' test_labels: '" + Path("labels") +
              "' classes: 3 } checkpoint { directory: '" + checkpoints() +
              "' }");
    WriteFile(Path("images"), IdxBytes({2, 1, 2}, {255, 0, 0, 255}));
    WriteFile(Path("labels"), IdxBytes({2}, {0, 0}));
  }

  std::string checkpoints() const { return Path("checkpoints"); }
  int Evaluate(std::vector<std::string> args) {
    args.push_back("--job=" + Path("job"));
    return Run<EvaluateCommand>("evaluate", args);
  }
};

TEST_F(EvaluateCommandTest, NewestCheckpointIsScoredWithoutAChief) {
  testing::WriteSoftmaxCheckpoint(checkpoints(), 3, 2, 3);

  EXPECT_EQ(Evaluate({}), 0) << Err();

  EXPECT_THAT(Out(), AllOf(StartsWith("step 3: accuracy 0.5000, loss "),
                           HasSubstr(", 2 examples\n")));
}

TEST_F(EvaluateCommandTest, ATerminalShowsWhatItDoes) {
  testing::WriteSoftmaxCheckpoint(checkpoints(), 3, 2, 3);
  const testing::PseudoTerminal pseudo(60);
  CLI::App app;
  const EvaluateCommand command(app);
  app.parse("evaluate --job=" + Path("job"));
  Terminal terminal(pseudo.inside(), nullptr, "xterm");
  std::ostringstream err;

  EXPECT_EQ(command.Run(terminal, err), 0) << err.str();

  EXPECT_THAT(pseudo.Shown(), AllOf(HasSubstr("reads the test set"),
                                    HasSubstr("\x1b[Kscores step 3"),
                                    HasSubstr("\x1b[Kstep 3: accuracy")));
}

TEST_F(EvaluateCommandTest, CheckpointOfAStepIsScored) {
  testing::WriteSoftmaxCheckpoint(checkpoints(), 3, 2, 3);
  testing::WriteSoftmaxCheckpoint(checkpoints(), 5, 2, 3);

  EXPECT_EQ(Evaluate({"--step=3"}), 0) << Err();
  EXPECT_THAT(Out(), StartsWith("step 3: "));
}

TEST_F(EvaluateCommandTest, MissingCheckpointClassesOrTestSetIsNamed) {
  EXPECT_EQ(Evaluate({}), 1);
  EXPECT_THAT(Err(), HasSubstr(checkpoints()));
  testing::WriteSoftmaxCheckpoint(checkpoints(), 3, 2, 4);
  EXPECT_EQ(Evaluate({}), 1);
  EXPECT_THAT(Err(), HasSubstr("data.classes"));
  EXPECT_EQ(
      Evaluate({"--set", "data.test_images=", "--set", "data.test_labels="}),
      1);
  EXPECT_THAT(Err(), HasSubstr("the job has no test set"));
}

TEST_F(EvaluateCommandTest, AFileThatIsMissingIsNamedWithItsField) {
  testing::WriteSoftmaxCheckpoint(checkpoints(), 3, 2, 3);
  EXPECT_EQ(Evaluate({"--set", "data.test_images=/nonexistent"}), 1);
  EXPECT_THAT(Err(), HasSubstr("data.test_images is /nonexistent: No such file "
                               "or directory; name a file that can be read"));
}

}  // namespace
}  // namespace lockstep::cli
