#include "deploy/cli/inspect/export_command.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/pseudo_terminal.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

absl::Span<const char> Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(float)};
}

// Checkpoints of "deep/w", with a moving average, and of "wide/w".
class ExportCommandTest : public ::testing::Test {
 protected:
  void Save(int64_t step, bool averages = true) {
    CheckpointTensors tensors;
    tensors.model = {{"deep/w", TensorType::kF32, {2}},
                     {"wide/w", TensorType::kF32, {1}}};
    tensors.optimizer = {{"deep/w/Adagrad", TensorType::kF32, {2}},
                         {"global_step", TensorType::kI64, {}}};
    if (averages) {
      tensors.optimizer.push_back(
          {"deep/w/ExponentialMovingAverage", TensorType::kF32, {2}});
    }
    auto writer = CheckpointStore(checkpoints()).Begin(step, tensors);
    ASSERT_OK(writer);
    const float start = static_cast<float>(step);
    SafetensorsWriter& optimizer = (*writer)->optimizer();
    ASSERT_OK((*writer)->model().WriteAt("deep/w", 0, Bytes({start, 1})));
    ASSERT_OK((*writer)->model().WriteAt("wide/w", 0, Bytes({2})));
    ASSERT_OK(optimizer.WriteAt("deep/w/Adagrad", 0, Bytes({8, 9})));
    ASSERT_OK(optimizer.WriteInt64("global_step", step));
    if (averages) {
      ASSERT_OK(optimizer.WriteAt("deep/w/ExponentialMovingAverage", 0,
                                  Bytes({5, 6})));
    }
    Manifest manifest;
    manifest.job_name = "job";
    manifest.mode = "strict";
    manifest.num_workers = 1;
    ASSERT_OK((*writer)->Commit(manifest));
  }

  int Run(std::vector<std::string> arguments, int terminal_fd = -1) {
    CLI::App app;
    const ExportCommand command(app);
    arguments.insert(
        arguments.end(),
        {"--out=" + out(), "--checkpoints=" + checkpoints(), "export"});
    app.parse(arguments);  // CLI11 takes the last one first
    std::ostringstream err;
    Terminal terminal(terminal_fd, nullptr, "xterm");
    const int code = command.Run(terminal, err);
    err_ = err.str();
    return code;
  }

  std::vector<std::string> Names() const {
    const auto file = SafetensorsReader::Open(out());
    EXPECT_OK(file);
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file->header().tensors) {
      names.push_back(tensor.name);
    }
    return names;
  }

  std::vector<float> Values(const std::string& name) const {
    const auto file = SafetensorsReader::Open(out());
    EXPECT_OK(file);
    std::vector<float> values(file->Find(name)->bytes / sizeof(float));
    EXPECT_OK(
        file->ReadAt(name, 0,
                     absl::MakeSpan(reinterpret_cast<char*>(values.data()),
                                    values.size() * sizeof(float))));
    return values;
  }

  std::string checkpoints() const { return dir_.Join("checkpoints"); }
  std::string out() const { return dir_.Join(name_); }

  const testing::TempDir dir_;
  std::string name_ = "model.safetensors";
  std::string err_;
};

TEST_F(ExportCommandTest, WritesTheVariablesOfTheNewestStepAlone) {
  Save(3);
  Save(4);
  ASSERT_EQ(Run({}), 0) << err_;
  EXPECT_THAT(Names(), ElementsAre("deep/w", "wide/w"));
  EXPECT_THAT(Values("deep/w"), ElementsAre(4, 1));
  EXPECT_EQ(SafetensorsReader::Open(out())->header().metadata.at("global_step"),
            "4");
}

TEST_F(ExportCommandTest, ATerminalShowsHowFarItIs) {
  Save(3);
  const testing::PseudoTerminal pseudo(60);
  EXPECT_EQ(Run({}, pseudo.inside()), 0) << err_;
  EXPECT_THAT(pseudo.Shown(), HasSubstr("writes model.safetensors, 66 %"));
}

TEST_F(ExportCommandTest, TheLastLineCountsOneVariableAndOneSlot) {
  Save(3);
  const testing::PseudoTerminal pseudo(60);
  EXPECT_EQ(Run({"--variables=deep*", "--slots=Adagrad"}, pseudo.inside()), 0)
      << err_;
  EXPECT_THAT(pseudo.Shown(), AllOf(HasSubstr(": 1 variable of step 3, 1 slot"),
                                    Not(HasSubstr("1 slots"))));
}

TEST_F(ExportCommandTest, AStepAndPatternsChoose) {
  Save(3);
  Save(4);
  ASSERT_EQ(Run({"--step=3", "--variables=deep*"}), 0) << err_;
  EXPECT_THAT(Names(), ElementsAre("deep/w"));
  EXPECT_THAT(Values("deep/w"), ElementsAre(3, 1));
}

TEST_F(ExportCommandTest, RowsOfAGrowingTableComeWithTheirKeys) {
  auto writer = CheckpointStore(checkpoints())
                    .Begin(1, {{{"t", TensorType::kF32, {0, 2}},
                                {"t/keys", TensorType::kI64, {0}},
                                {"w", TensorType::kF32, {0}}},
                               {{"global_step", TensorType::kI64, {}}}});
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->optimizer().WriteInt64("global_step", 1));
  Manifest manifest;
  manifest.job_name = "job";
  manifest.mode = "strict";
  manifest.num_workers = 1;
  ASSERT_OK((*writer)->Commit(manifest));

  EXPECT_EQ(Run({"--variables=t"}), 0) << err_;
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("t", "t/keys"));
}

TEST_F(ExportCommandTest, AveragesComeUnderTheNamesOfTheirVariables) {
  Save(3);
  ASSERT_EQ(Run({"--averaged"}), 0) << err_;
  EXPECT_THAT(Names(), ElementsAre("deep/w", "wide/w"));
  EXPECT_THAT(Values("deep/w"), ElementsAre(5, 6));
  EXPECT_THAT(Values("wide/w"), ElementsAre(2));
}

TEST_F(ExportCommandTest, SlotsOfTheChosenVariablesComeByTheirNames) {
  Save(3);
  ASSERT_EQ(Run({"--slots=Adagrad"}), 0) << err_;
  EXPECT_THAT(Names(),
              UnorderedElementsAre("deep/w", "deep/w/Adagrad", "wide/w"));
  EXPECT_THAT(Values("deep/w/Adagrad"), ElementsAre(8, 9));

  name_ = "all";
  ASSERT_EQ(Run({"--slots=*"}), 0) << err_;
  EXPECT_THAT(Names(), UnorderedElementsAre("deep/w", "deep/w/Adagrad",
                                            "deep/w/ExponentialMovingAverage",
                                            "wide/w"));

  name_ = "none";
  EXPECT_EQ(Run({"--slots=Momentum"}), 1);
  EXPECT_THAT(err_, HasSubstr("--slots is \"Momentum\", which matches no slot "
                              "of these variables; they have Adagrad, "
                              "ExponentialMovingAverage: change the pattern"));
  EXPECT_EQ(Run({"--variables=wide*", "--slots=*"}), 1);
  EXPECT_THAT(err_, HasSubstr("they have none: leave it out"));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(ExportCommandTest, ImpossibleExportIsRefusedAndLeavesNoFile) {
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("there is no checkpoint in"));
  Save(3, false);
  EXPECT_EQ(Run({"--averaged"}), 1);
  EXPECT_THAT(err_, HasSubstr("--averaged is given"));
  EXPECT_EQ(Run({"--variables=none*"}), 1);
  EXPECT_THAT(err_, HasSubstr("--variables is \"none*\""));
  EXPECT_EQ(Run({"--step=7"}), 1);
  EXPECT_THAT(err_, HasSubstr("there is no checkpoint of step 7; give one of "
                              "3, or leave --step out"));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(ExportCommandTest, AFileThatIsThereStaysAsItIs) {
  Save(3);
  std::ofstream(out()) << "mine";
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("which exists"));
  EXPECT_EQ(std::filesystem::file_size(out()), 4);
}

TEST_F(ExportCommandTest, APathThatCannotBeIsAnError) {
  Save(3);
  name_ = std::string(5000, 'x');
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("name too long"));
}

TEST_F(ExportCommandTest, AnErrorNamesTheFileThatTheUserHasNamed) {
  Save(3);
  name_ = "missing/model.safetensors";
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("--out is " + out() + ": cannot create"),
                          Not(HasSubstr(".partial"))));
}

TEST_F(ExportCommandTest, AFileThatAnEndedExportHasLeftIsNamed) {
  Save(3);
  std::ofstream(out() + ".partial") << "half";
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr(out() + ".partial: "));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(ExportCommandTest, ADamagedCheckpointIsNotCopied) {
  Save(3);
  const std::string model = checkpoints() + "/step-00000003/model.safetensors";
  std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(ExportCommandTest, AnOlderCheckpointIsNoStandInForADamagedOne) {
  Save(3);
  Save(4);
  std::filesystem::resize_file(
      checkpoints() + "/step-00000004/model.safetensors", 9);

  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("step-00000004"),
                          HasSubstr("has 9 bytes, the manifest says"),
                          HasSubstr("is of step 3: name that with --step"),
                          Not(HasSubstr("passed over"))));
  EXPECT_FALSE(std::filesystem::exists(out()));

  EXPECT_EQ(Run({"--step=3"}), 0) << err_;
}

}  // namespace
}  // namespace lockstep::cli
