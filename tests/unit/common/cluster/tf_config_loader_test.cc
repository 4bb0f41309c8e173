#include "common/cluster/tf_config_loader.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/json/bounded_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

class TfConfigLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("TF_CONFIG");
    unsetenv("CLUSTER_SPEC");
  }
  void TearDown() override { SetUp(); }

  std::string WriteFile(const std::string& text) const {
    const std::string name = directory_.Join("tf_config.json");
    std::ofstream(name, std::ios::binary) << text;
    return name;
  }

  const testing::TempDir directory_;
};

TEST_F(TfConfigLoaderTest, UnsetVariableIsAnErrorThatNamesIt) {
  EXPECT_THAT(LoadTfConfig(""), StatusIs(absl::StatusCode::kNotFound,
                                         StartsWith("TF_CONFIG is not set")));
}

TEST_F(TfConfigLoaderTest, VariableIsRead) {
  setenv("TF_CONFIG", R"({"task": {"type": "ps"}})", 1);

  const absl::StatusOr<TfConfig> config = LoadTfConfig("");

  ASSERT_OK(config);
  EXPECT_EQ(config->task_type, "ps");
  EXPECT_EQ(config->source, "TF_CONFIG");
}

TEST_F(TfConfigLoaderTest, EmptyVariableIsAnErrorThatNamesIt) {
  setenv("TF_CONFIG", "", 1);

  EXPECT_THAT(LoadTfConfig(""),
              StatusIs(kInvalid, StartsWith("TF_CONFIG is empty")));
}

TEST_F(TfConfigLoaderTest, ClusterSpecAloneIsTakenWithAWarning) {
  setenv("CLUSTER_SPEC", R"({"cluster": {"worker": ["w:1"]}})", 1);

  const absl::StatusOr<TfConfig> config = LoadTfConfig("");

  ASSERT_OK(config);
  EXPECT_EQ(config->cluster.NumTasks("worker"), 1);
  EXPECT_THAT(config->warnings,
              ElementsAre("TF_CONFIG is not set; CLUSTER_SPEC is taken "
                          "instead"));
}

TEST_F(TfConfigLoaderTest, FileBeatsTheVariable) {
  setenv("TF_CONFIG", "broken", 1);
  const std::string name = WriteFile(R"({"task": {"type": "worker"}})");

  const absl::StatusOr<TfConfig> config = LoadTfConfig(name);

  ASSERT_OK(config);
  EXPECT_EQ(config->task_type, "worker");
  EXPECT_EQ(config->source, name);
}

TEST_F(TfConfigLoaderTest, BrokenFileIsNamed) {
  const std::string name = WriteFile("{");

  EXPECT_THAT(LoadTfConfig(name),
              StatusIs(kInvalid, StartsWith(name + " is not valid JSON")));
}

TEST_F(TfConfigLoaderTest, EmptyFileIsAnError) {
  const std::string name = WriteFile("");

  EXPECT_THAT(LoadTfConfig(name),
              StatusIs(kInvalid, StartsWith(name + " is empty")));
}

TEST_F(TfConfigLoaderTest, HugeFileIsAnError) {
  const std::string name = WriteFile(std::string(2 * kMaxJsonBytes, 'a'));

  EXPECT_THAT(LoadTfConfig(name),
              StatusIs(kInvalid, HasSubstr("is longer than 4194304 bytes")));
}

TEST_F(TfConfigLoaderTest, MissingFileAndFolderAreNotFound) {
  EXPECT_THAT(LoadTfConfig("/no/such/file"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/no/such/file cannot be read: No such")));
  EXPECT_THAT(LoadTfConfig(directory_.path()),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep
