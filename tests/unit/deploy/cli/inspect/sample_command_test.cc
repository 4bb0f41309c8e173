#include "deploy/cli/inspect/sample_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/models/zoo/registry.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// A job with a language model, and what `lockstep sample` says of it.
class SampleCommandTest : public ::testing::Test {
 protected:
  SampleCommandTest() {
    std::ofstream(dir_.Join("job")) << R"(
      name: "text" train_steps: 1 batch_size: 1
      model { kind: "transformer" layers: 1 heads: 1 width: 2 }
      data { train_text: "text" sequence_length: 4 }
      learning_rate: 0.1)";
  }

  // A checkpoint of a model of which nothing is known but that it writes 'x'.
  void Save() {
    ModelConfig config;
    config.kind = "transformer";
    config.layers = config.heads = 1;
    config.width = 2;
    const auto model = *MakeModel(config, {1, 1, 1, 256, 4});
    std::vector<TensorSpec> tensors;
    for (const VariableSpec& variable : model->variables()) {
      tensors.push_back({variable.name, TensorType::kF32, variable.shape});
    }
    const CheckpointStore store(dir_.Join("checkpoints"));
    auto writer =
        store.Begin(3, {tensors, {{"global_step", TensorType::kI64, {}}}});
    ASSERT_OK(writer);
    for (const TensorSpec& tensor : tensors) {
      std::vector<float> values(256 * 4);
      int64_t size = 1;
      for (const int64_t dim : tensor.shape) size *= dim;
      if (tensor.name == model->variables().back().name) values['x'] = 100;
      ASSERT_OK((*writer)->model().WriteAt(
          tensor.name, 0,
          absl::MakeConstSpan(reinterpret_cast<const char*>(values.data()),
                              static_cast<size_t>(size) * sizeof(float))));
    }
    ASSERT_OK((*writer)->optimizer().WriteInt64("global_step", 3));
    Manifest manifest;
    manifest.job_name = "text";
    manifest.global_step = 3;
    manifest.mode = "strict";
    manifest.num_workers = 1;
    ASSERT_OK((*writer)->Commit(manifest));
  }

  int Run(const std::vector<std::string>& what) {
    CLI::App app;
    const SampleCommand command(app);
    std::vector<std::string> arguments = {
        "--job=" + dir_.Join("job"),
        "--checkpoints=" + dir_.Join("checkpoints"), "sample"};
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

TEST_F(SampleCommandTest, WhatTheModelWritesFollowsThePrompt) {
  Save();

  EXPECT_EQ(Run({"--prompt=A\x1b[2J", "--bytes=5"}), 0) << err_;

  EXPECT_EQ(out_, "A?[2Jxxxxx\n");
}

TEST_F(SampleCommandTest, WhatIsMissingOrOfAnotherModelIsNamed) {
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("no checkpoint"));
  Save();
  EXPECT_EQ(Run({"--set=model.width=4"}), 1);
  EXPECT_THAT(err_, HasSubstr("embedding"));
  EXPECT_EQ(Run({"--set=model.kind=softmax"}), 1);
  EXPECT_THAT(err_, HasSubstr("model.kind must be \"transformer\""));
  EXPECT_EQ(out_, "");
}

}  // namespace
}  // namespace lockstep
