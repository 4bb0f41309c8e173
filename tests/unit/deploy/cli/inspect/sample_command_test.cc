#include "deploy/cli/inspect/sample_command.h"

#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_store.h"
#include "common/job/variable_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"
#include "worker/models/zoo/registry.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

// A job with a language model, and the output of `lockstep sample`.
class SampleCommandTest : public testing::CommandTest {
 protected:
  SampleCommandTest() {
    Write("job", R"(
      name: "text" train_steps: 1 batch_size: 1
      model { kind: "transformer" layers: 1 heads: 1 width: 2 }
      data { train_text: "text" sequence_length: 4 }
      learning_rate: 0.1)");
  }

  // Writes zeros, but for the last tensor, that of the bias of the bytes: it
  // makes `letter` certain.
  static void WriteAll(SafetensorsWriter& writer,
                       const std::vector<TensorSpec>& tensors,
                       unsigned char letter) {
    for (const TensorSpec& tensor : tensors) {
      std::vector<float> values(256 * 4);
      size_t size = 1;
      for (const int64_t dim : tensor.shape) size *= static_cast<size_t>(dim);
      if (tensor == tensors.back()) values[letter] = 100;
      ASSERT_OK(writer.WriteAt(
          tensor.name, 0,
          absl::MakeConstSpan(reinterpret_cast<const char*>(values.data()),
                              size * sizeof(float))));
    }
  }

  // Saves a checkpoint of a model that always writes 'x', and, if asked, its
  // moving averages, which always write 'y'.
  void Save(bool with_averages = false) {
    ModelConfig config;
    config.kind = "transformer";
    config.layers = config.heads = 1;
    config.width = 2;
    const auto model = *worker::MakeModel(config, {1, 1, 1, 256, 4});
    std::vector<TensorSpec> tensors;
    for (const VariableSpec& variable : model->variables()) {
      tensors.push_back({variable.name, TensorType::kF32, variable.shape});
    }
    std::vector<TensorSpec> averages;
    for (const TensorSpec& tensor : tensors) {
      if (!with_averages) break;
      averages.push_back({TensorNameOf(tensor.name, kMovingAverageName),
                          tensor.type, tensor.shape});
    }
    std::vector<TensorSpec> others = averages;
    others.push_back({"global_step", TensorType::kI64, {}});
    const CheckpointStore store(Path("checkpoints"));
    auto writer = store.Begin(3, {tensors, others});
    ASSERT_OK(writer);
    WriteAll((*writer)->model(), tensors, 'x');
    WriteAll((*writer)->optimizer(), averages, 'y');
    ASSERT_OK((*writer)->optimizer().WriteInt64("global_step", 3));
    Manifest manifest;
    manifest.job_name = "text";
    manifest.global_step = 3;
    manifest.mode = "strict";
    manifest.num_workers = 1;
    ASSERT_OK((*writer)->Commit(manifest));
  }

  int Sample(std::vector<std::string> args) {
    args.push_back("--job=" + Path("job"));
    return Run<SampleCommand>("sample", args);
  }
  std::string checkpoints() const {
    return "--checkpoints=" + Path("checkpoints");
  }
};

TEST_F(SampleCommandTest, WhatTheModelWritesFollowsThePrompt) {
  Save();

  EXPECT_EQ(Sample({checkpoints(), "--prompt=A\x1b[2J", "--bytes=5"}), 0)
      << Err();

  EXPECT_EQ(Out(), "A?[2Jxxxxx\n");
}

TEST_F(SampleCommandTest, MovingAveragesWriteUnlessTheJobForbidsIt) {
  Save(/*with_averages=*/true);
  const std::string averaged = "--set=moving_average.decay=0.9";

  EXPECT_EQ(Sample({checkpoints(), "--prompt=A", "--bytes=3", averaged}), 0)
      << Err();
  EXPECT_EQ(Out(), "Ayyy\n");
  EXPECT_EQ(Sample({checkpoints(), "--prompt=A", "--bytes=3", averaged,
                    "--set=moving_average.evaluate=false"}),
            0)
      << Err();
  EXPECT_THAT(Out(), HasSubstr("Axxx\n"));
  EXPECT_EQ(Sample({checkpoints(), "--prompt=A", "--bytes=3"}), 0) << Err();
  EXPECT_THAT(Out(), HasSubstr("Axxx\n"));
}

TEST_F(SampleCommandTest, JobWithoutADirectoryOfCheckpointsNeedsTheFlag) {
  EXPECT_EQ(Sample({}), 1);

  EXPECT_THAT(Err(), HasSubstr("the job has no checkpoint.directory; give "
                               "--checkpoints DIR"));
}

TEST_F(SampleCommandTest, NegativeSeedIsRefused) {
  EXPECT_THROW(Sample({checkpoints(), "--seed=-1"}), CLI::ValidationError);
}

TEST_F(SampleCommandTest, WhatIsMissingOrOfAnotherModelIsNamed) {
  EXPECT_EQ(Sample({checkpoints()}), 1);
  EXPECT_THAT(Err(), HasSubstr("no checkpoint"));
  Save();
  EXPECT_EQ(Sample({checkpoints(), "--set=model.width=4"}), 1);
  EXPECT_THAT(Err(), HasSubstr("embedding"));
  EXPECT_EQ(Sample({checkpoints(), "--set=model.kind=softmax"}), 1);
  EXPECT_THAT(Err(), HasSubstr("model.kind must be \"transformer\""));
  EXPECT_EQ(Out(), "");
}

}  // namespace
}  // namespace lockstep::cli
