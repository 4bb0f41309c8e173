#include "deploy/cli/inspect/nearest_command.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

// A checkpoint with the vectors of the words a, b, c.
class NearestCommandTest : public ::testing::Test {
 protected:
  NearestCommandTest() {
    std::ofstream(dir_.Join("text")) << "a a a b b c\n";
    std::ofstream(dir_.Join("pairs")) << "a b\na c\n";
  }

  // Saves a growing table if there are keys.
  void Save(const std::vector<float>& vectors,
            const std::vector<int64_t>& keys = {}) {
    const auto rows = static_cast<int64_t>(vectors.size() / 2);
    const CheckpointStore store(dir_.Join("checkpoints"));
    CheckpointTensors tensors = {
        {{"input_vectors", TensorType::kF32, {rows, 2}}},
        {{"global_step", TensorType::kI64, {}}}};
    if (!keys.empty()) {
      tensors.model.push_back({"input_vectors/keys",
                               TensorType::kI64,
                               {static_cast<int64_t>(keys.size())}});
    }
    auto writer = store.Begin(3, tensors);
    ASSERT_OK(writer);
    if (!keys.empty()) {
      ASSERT_OK((*writer)->model().WriteAt(
          "input_vectors/keys", 0,
          absl::MakeConstSpan(reinterpret_cast<const char*>(keys.data()),
                              keys.size() * sizeof(int64_t))));
    }
    ASSERT_OK((*writer)->model().WriteAt(
        "input_vectors", 0,
        absl::MakeConstSpan(reinterpret_cast<const char*>(vectors.data()),
                            vectors.size() * sizeof(float))));
    ASSERT_OK((*writer)->optimizer().WriteInt64("global_step", 3));
    Manifest manifest;
    manifest.job_name = "job";
    manifest.global_step = 3;
    manifest.mode = "strict";
    manifest.num_workers = 1;
    ASSERT_OK((*writer)->Commit(manifest));
  }

  int Run(const std::vector<std::string>& what) {
    CLI::App app;
    const NearestCommand command(app);
    std::vector<std::string> arguments = {
        "--min_count=1", "--text=" + dir_.Join("text"),
        "--checkpoints=" + dir_.Join("checkpoints"), "nearest"};
    arguments.insert(arguments.begin(), what.rbegin(), what.rend());
    app.parse(arguments);  // CLI11 takes the last one first
    std::ostringstream err;
    Terminal terminal(-1, nullptr, nullptr);
    const int code = command.Run(terminal, err);
    err_ = err.str();
    return code;
  }

  const testing::TempDir dir_;
  std::string err_;
};

TEST_F(NearestCommandTest, EitherWordOrPairsMustBeGiven) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(err_,
            "lockstep nearest: neither --word nor --pairs is given; give "
            "one\n");
  EXPECT_THROW(Run({"--word=a", "--pairs=p"}), CLI::ExcludesError);
}

TEST_F(NearestCommandTest, WordsAndPairsAreLookedUp) {
  Save({1, 0, 1, 1, -1, 0});
  EXPECT_EQ(Run({"--word=a"}), 0) << err_;
  EXPECT_EQ(Run({"--pairs=" + dir_.Join("pairs")}), 0) << err_;
}

TEST_F(NearestCommandTest, MissingCheckpointWordTableOrFileIsRefused) {
  EXPECT_EQ(Run({"--word=a"}), 1);
  EXPECT_THAT(err_, HasSubstr("no checkpoint"));
  Save({1, 0, 1, 1, -1, 0});
  EXPECT_EQ(Run({"--word=x"}), 1);
  EXPECT_THAT(err_, HasSubstr("\"x\""));
  EXPECT_EQ(Run({"--word=a", "--table=none"}), 1);
  EXPECT_EQ(Run({"--pairs=/nowhere"}), 1);
  EXPECT_THAT(err_, HasSubstr("--pairs /nowhere: cannot be read: No such"));
}

TEST_F(NearestCommandTest, AGzippedTextIsReadAsTrainingReadsIt) {
  Save({1, 0, 1, 1, -1, 0});
  const std::string text = "a a a b b c\n";
  testing::WriteFile(dir_.Join("text"),
                     testing::Gzip({text.begin(), text.end()}));
  EXPECT_EQ(Run({"--word=a"}), 0) << err_;
}

TEST_F(NearestCommandTest, ATextLargerThanOtherFilesOfFlagsIsRead) {
  Save({1, 0, 1, 1, -1, 0});
  std::ofstream(dir_.Join("text"), std::ios::app) << std::string(17 << 20, ' ');
  EXPECT_EQ(Run({"--word=a"}), 0) << err_;
}

TEST_F(NearestCommandTest, ATextThatIsNotThereIsNamedWithTheFlag) {
  Save({1, 0, 1, 1, -1, 0});
  std::filesystem::remove(dir_.Join("text"));
  EXPECT_EQ(Run({"--word=a"}), 1);
  EXPECT_THAT(err_, HasSubstr("--text " + dir_.Join("text") + ": "));
}

TEST_F(NearestCommandTest, AnotherTextIsNoticed) {
  Save({1, 0, 1, 1});
  EXPECT_EQ(Run({"--word=a"}), 1);
  EXPECT_THAT(err_, HasSubstr("a row for each of the 3 words"));
}

TEST_F(NearestCommandTest, RowsOfAGrowingTableAreThoseOfTheirKeys) {
  Save({2, 0.1f, 1, 0}, {0, 2});  // no row of b
  EXPECT_EQ(Run({"--pairs=" + dir_.Join("pairs"), "--count=1"}), 0) << err_;
  EXPECT_EQ(Run({"--word=c"}), 0) << err_;
}

TEST_F(NearestCommandTest, KeysThatAreNoWordsAreNoticed) {
  Save({2, 0.1f, 1, 0}, {0, 3});
  EXPECT_NE(Run({"--word=c"}), 0);
  EXPECT_THAT(err_, HasSubstr("word 3"));
}

}  // namespace
}  // namespace lockstep::cli
