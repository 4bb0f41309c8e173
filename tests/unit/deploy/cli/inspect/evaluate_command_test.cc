#include "deploy/cli/inspect/evaluate_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/idx_bytes.h"
#include "tests/unit/worker/scoring/softmax_checkpoint.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::WriteFile;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A job of pictures of 1 x 2 in three classes, and its checkpoints.
class EvaluateCommandTest : public ::testing::Test {
 protected:
  EvaluateCommandTest() {
    std::ofstream(dir_.Join("job"))
        << "name: 'job' train_steps: 1 batch_size: 1 model { kind: 'softmax' }"
        << " data { train_images: 'elsewhere' train_labels: 'elsewhere'"
        << " test_images: '" << dir_.Join("images") << "' test_labels: '"
        << dir_.Join("labels") << "' classes: 3 } checkpoint { directory: '"
        << dir_.Join("checkpoints") << "' }";
    WriteFile(dir_.Join("images"), IdxBytes({2, 1, 2}, {255, 0, 0, 255}));
    WriteFile(dir_.Join("labels"), IdxBytes({2}, {0, 0}));
  }

  int Run(const std::vector<std::string>& what) {
    CLI::App app;
    const EvaluateCommand command(app);
    std::vector<std::string> arguments = {"--job=" + dir_.Join("job"),
                                          "evaluate"};
    arguments.insert(arguments.begin(), what.rbegin(), what.rend());
    app.parse(arguments);  // CLI11 takes the last one first
    const int fd = open(dir_.Join("out").c_str(), O_CREAT | O_RDWR, 0600);
    std::ostringstream err;
    Terminal terminal(fd, nullptr, nullptr);
    const int code = command.Run(terminal, err);
    close(fd);
    err_ = err.str();
    std::ifstream out(dir_.Join("out"));
    out_ = std::string(std::istreambuf_iterator<char>(out), {});
    return code;
  }

  const testing::TempDir dir_;
  std::string err_;
  std::string out_;
};

TEST_F(EvaluateCommandTest, NewestCheckpointIsScoredWithoutAChief) {
  testing::WriteSoftmaxCheckpoint(dir_.Join("checkpoints"), 3, 2, 3);

  EXPECT_EQ(Run({}), 0) << err_;

  EXPECT_THAT(out_, StartsWith("step 3: accuracy 0.5000, loss "));
  EXPECT_THAT(out_, HasSubstr(", 2 examples\n"));
}

TEST_F(EvaluateCommandTest, CheckpointOfAStepIsScored) {
  testing::WriteSoftmaxCheckpoint(dir_.Join("checkpoints"), 3, 2, 3);
  testing::WriteSoftmaxCheckpoint(dir_.Join("checkpoints"), 5, 2, 3);

  EXPECT_EQ(Run({"--step=3"}), 0) << err_;
  EXPECT_THAT(out_, StartsWith("step 3: "));
}

TEST_F(EvaluateCommandTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr(dir_.Join("checkpoints")));
  testing::WriteSoftmaxCheckpoint(dir_.Join("checkpoints"), 3, 2, 4);
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("data.classes"));
  EXPECT_EQ(Run({"--set", "data.test_images=", "--set", "data.test_labels="}),
            1);
  EXPECT_THAT(err_, HasSubstr("the job has no test set"));
}

}  // namespace
}  // namespace lockstep
