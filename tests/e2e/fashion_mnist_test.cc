// The standard data set, if it is installed.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr char kDirectory[] = "/usr/share/datasets/fashion-mnist";

std::string Setting(const std::string& field, const std::string& file) {
  return absl::StrCat("data.", field, "=", kDirectory, "/", file);
}

// The parameter is gradient_wire_type as in the job file.
class FashionMnistTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, FashionMnistTest,
                         ::testing::Values("VARIABLE", "BFLOAT16"),
                         [](const auto& info) { return info.param; });

TEST_P(FashionMnistTest, IsLearned) {
  if (!std::filesystem::exists(kDirectory)) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: there is no " << kDirectory
                 << "; install dataset-fashion-mnist";
  }
  auto job = TrainingJob::Make(
      {.workers = 3,
       .evaluator = true,
       .set = {Setting("train_images", "train-images-idx3-ubyte.gz"),
               Setting("train_labels", "train-labels-idx1-ubyte.gz"),
               Setting("test_images", "t10k-images-idx3-ubyte.gz"),
               Setting("test_labels", "t10k-labels-idx1-ubyte.gz"),
               "replicas_to_aggregate=2", "batch_size=100",
               "max_part_bytes=1048576",
               absl::StrCat("gradient_wire_type=", GetParam())}});

  ASSERT_THAT(job->Run(), IsOk());

  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(::testing::ContainsRegex(
                  "step 150: accuracy 0\\.(7[5-9]|8|9)")));
}

}  // namespace
}  // namespace lockstep::testing
