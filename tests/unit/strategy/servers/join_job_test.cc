#include "strategy/servers/join_job.h"

#include <cstddef>
#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/servers/training_job.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class JoinJobTest : public ::testing::Test {
 protected:
  JobOptions WithConfig(const std::string& text) {
    JobOptions options;
    options.tf_config = directory_.Join("tf_config.json");
    std::ofstream(options.tf_config) << text;
    return options;
  }

  const TempDir directory_;
  const std::vector<float> ones_ = {1, 1};
  const JobVariable variable_ = {
      "w",
      {2},
      DType::kFloat32,
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(ones_.data()), 8)};
};

constexpr char kTwoTasks[] = R"({"cluster": {"ps": ["127.0.0.1:1"],
    "chief": ["127.0.0.1:2"], "worker": ["127.0.0.1:3"]},
    "task": {"type": "worker", "index": 0}})";

TEST_F(JoinJobTest, AClusterThatCannotBeReadIsRefused) {
  EXPECT_THAT(JoinJob(WithConfig("{"), {variable_}), StatusIs(kInvalid));
}

TEST_F(JoinJobTest, ATaskThatIsNotInTheClusterIsRefused) {
  EXPECT_THAT(JoinJob(WithConfig(R"({"cluster": {"worker": ["127.0.0.1:3"]},
      "task": {"type": "worker", "index": 4}})"),
                      {variable_}),
              StatusIs(kInvalid, HasSubstr("worker 4")));
}

TEST_F(JoinJobTest, TwoVariablesOfOneNameAreRefused) {
  EXPECT_THAT(JoinJob(WithConfig(kTwoTasks), {variable_, variable_}),
              StatusIs(kInvalid, HasSubstr("\"w\"")));
}

TEST_F(JoinJobTest, ValuesThatDoNotFitTheShapeAreRefused) {
  JobVariable longer = variable_;
  longer.shape = {3};
  EXPECT_THAT(JoinJob(WithConfig(kTwoTasks), {longer}),
              StatusIs(kInvalid, HasSubstr("needs 12")));
}

TEST_F(JoinJobTest, AWorkerThatEndsBeforeItsJobAnswersIsNoLeak) {
  EXPECT_THAT(JoinJob(WithConfig(kTwoTasks), {variable_}),
              ::lockstep::testing::IsOk());
}

}  // namespace
}  // namespace lockstep::strategy
