#include "deploy/cli/inspect/trained_job.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/scoring/softmax_checkpoint.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::WriteSoftmaxCheckpoint;
using ::testing::HasSubstr;

class TrainedJobTest : public ::testing::Test {
 protected:
  TrainedJobTest() {
    std::ofstream(dir_.Join("job"))
        << "name: 'job' train_steps: 1 batch_size: 1 model { kind: 'softmax' }"
        << " data { train_images: 'elsewhere' train_labels: 'elsewhere' }";
  }

  // Opens the checkpoint that the flags select, and returns its step.
  absl::StatusOr<int64_t> Open(std::vector<std::string> flags) {
    CLI::App app;
    const TrainedJob trained(app);
    flags.push_back("--job=" + dir_.Join("job"));
    std::reverse(flags.begin(), flags.end());  // CLI11's order
    app.parse(flags);
    const absl::StatusOr<JobConfig> job = trained.ReadBuiltIn();
    if (!job.ok()) return job.status();
    const absl::StatusOr<CheckpointReader> checkpoint =
        trained.OpenCheckpoint(*job);
    if (!checkpoint.ok()) return checkpoint.status();
    return checkpoint->manifest().global_step;
  }
  std::string Directory(const std::string& name) const {
    return "--set=checkpoint.directory=" + dir_.Join(name);
  }

  const testing::TempDir dir_;
};

TEST_F(TrainedJobTest, NewestCheckpointIsTheDefault) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  WriteSoftmaxCheckpoint(dir_.Join("a"), 5, 2, 3);

  EXPECT_THAT(Open({Directory("a")}), testing::IsOkAndHolds(5));
  EXPECT_THAT(Open({Directory("a"), "--step=3"}), testing::IsOkAndHolds(3));
}

TEST_F(TrainedJobTest, ChangedBytesAreNoticed) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  const std::string file = dir_.Join("a/step-00000003/model.safetensors");
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-1, std::ios::end);
  stream.put('\x7f');
  stream.close();

  EXPECT_THAT(Open({Directory("a")}),
              testing::StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(TrainedJobTest, FlagSaysWhereCheckpointsAreIfNotTheJob) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  WriteSoftmaxCheckpoint(dir_.Join("b"), 7, 2, 3);

  EXPECT_THAT(Open({Directory("a"), "--checkpoints=" + dir_.Join("b")}),
              testing::IsOkAndHolds(7));
}

TEST_F(TrainedJobTest, ProgramOfTheUserFindsTheCheckpointInItsEnvironment) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  WriteSoftmaxCheckpoint(dir_.Join("a"), 5, 2, 3);
  CLI::App app;
  const TrainedJob trained(app);
  app.parse(std::vector<std::string>{Directory("a"), "--step=3",
                                     "--job=" + dir_.Join("job")});
  const UserCommand prints = {"sh", "-c",
                              "ls $LOCKSTEP_CHECKPOINT >&2; exit 7"};

  // A command that replaces the process ends it with its own code.
  EXPECT_EXIT(trained.Become(prints).IgnoreError(),
              ::testing::ExitedWithCode(7), "model.safetensors");
  EXPECT_THAT(trained.Become({"no-such-program"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no-such-program")));
}

TEST_F(TrainedJobTest, ProgramOfTheUserLearnsWhatTheJobsEvaluatorScores) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  for (const auto& [setting, says] :
       {std::pair("--set=moving_average.evaluate=false", "averaged no"),
        std::pair("--set=seed=3", "averaged yes")}) {
    CLI::App app;
    const TrainedJob trained(app);
    app.parse(std::vector<std::string>{setting, Directory("a"),
                                       "--job=" + dir_.Join("job")});
    EXPECT_EXIT(trained
                    .Become({"sh", "-c",
                             "echo averaged $LOCKSTEP_AVERAGED >&2; exit 7"})
                    .IgnoreError(),
                ::testing::ExitedWithCode(7), says);
  }
}

TEST_F(TrainedJobTest, ProgramOfTheUserNeedsNoJobWhereTheFlagNamesADirectory) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  CLI::App app;
  const TrainedJob trained(app);
  app.parse(std::vector<std::string>{"--checkpoints=" + dir_.Join("a")});

  EXPECT_EXIT(trained.Become({"sh", "-c", "exit 7"}).IgnoreError(),
              ::testing::ExitedWithCode(7), "");
  EXPECT_THAT(trained.ReadBuiltIn(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there is no job; give --job FILE")));
}

TEST_F(TrainedJobTest, AModelOfAProgramIsComputedByThat) {
  EXPECT_THAT(Open({"--set=model.kind=external", Directory("a")}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give that after --")));
}

TEST_F(TrainedJobTest, OutMustBeNew) {
  EXPECT_OK(CheckOutIsNew(""));
  EXPECT_OK(CheckOutIsNew(dir_.Join("new")));
  EXPECT_THAT(CheckOutIsNew(dir_.Join("job")),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("remove it or name another")));
}

TEST_F(TrainedJobTest, TheDeviceIsThatOfTheFlag) {
  CLI::App app;
  const TrainedJob trained(app);
  app.parse(
      std::vector<std::string>{"--device=abacus", "--job=" + dir_.Join("job")});
  EXPECT_THAT(trained.OpenDevice().status().message(), HasSubstr("abacus"));
}

TEST_F(TrainedJobTest, MissingCheckpointFlagOrFieldIsNamed) {
  WriteSoftmaxCheckpoint(dir_.Join("a"), 3, 2, 3);
  EXPECT_THAT(Open({Directory("a"), "--step=4"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("4")));
  EXPECT_THAT(Open({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("give --checkpoints DIR")));
  EXPECT_THAT(Open({Directory("none")}).status().message(),
              HasSubstr(dir_.Join("none")));
  EXPECT_THAT(Open({"--set=train_stepz=1"}).status().message(),
              HasSubstr("train_stepz"));
}

}  // namespace
}  // namespace lockstep::cli
