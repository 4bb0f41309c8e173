#include "worker/data/examples.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

TEST(ExamplesTest, TextIsCutIntoSequences) {
  const testing::TempDir directory;
  DataConfig data;
  data.train_text = std::string(directory.path()) + "/text";
  data.sequence_length = 2;
  std::ofstream(data.train_text) << "hello";

  const absl::StatusOr<Examples> examples = LoadTrainingExamples(data);

  ASSERT_OK(examples);
  EXPECT_EQ(examples->count, 2);
  EXPECT_EQ(examples->tokens, 2);
  EXPECT_EQ(examples->classes, 256);
  const absl::StatusOr<Batch> batch = examples->load({1});
  ASSERT_OK(batch);
  EXPECT_THAT(batch->tokens, ElementsAre('l', 'l'));
}

TEST(ExamplesTest, MissingFilesAreErrors) {
  DataConfig data;
  data.train_images = data.train_labels = "/nowhere/pictures";
  EXPECT_THAT(LoadTrainingExamples(data),
              StatusIs(absl::StatusCode::kNotFound));
  data.test_text = "/nowhere/text";
  data.sequence_length = 1;
  EXPECT_THAT(LoadTestExamples(data), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ExamplesTest, ExamplesWithoutNumbersTakeNoMemory) {
  const testing::TempDir directory;
  const std::string path = std::string(directory.path()) + "/empty.npy";
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 0), }"
      "\n";
  std::ofstream(path) << std::string("\x93NUMPY\x01\x00", 8)
                      << static_cast<char>(header.size()) << '\0' << header;
  EXPECT_THAT(LoadFeatures(path, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("no numbers")));
}

}  // namespace
}  // namespace lockstep::worker
