#include "deploy/cli/tasks/job_file.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJob[] =
    "name: 'small' train_steps: 5 batch_size: 2\n"
    "data { train_images: 'x' train_labels: 'y' }\n";

TEST(JobFileTest, SettingsAreAppliedInOrder) {
  const auto job =
      DecodeJobFile(kJob, "job.textproto",
                    std::vector<std::string>{"train_steps=7", "train_steps=8"});
  ASSERT_OK(job);
  EXPECT_EQ(job->train_steps, 8);
  EXPECT_EQ(job->batch_size, 2);
}

TEST(JobFileTest, MessageNamesTheSourceAndTheField) {
  EXPECT_THAT(DecodeJobFile(kJob, "job.textproto",
                            std::vector<std::string>{"batch_size=-1"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("batch_size"))));
  EXPECT_THAT(
      DecodeJobFile("train_steps: 5 batch_size: 0", "mine.textproto", {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("mine.textproto")));
}

TEST(JobFileTest, OwnProgramIsExternalUnlessAKindIsNamed) {
  EXPECT_THAT(
      SettingsForOwnProgram(kJob, "f", {"train_steps=7"}),
      IsOkAndHolds(ElementsAre("train_steps=7", "model.kind=external")));
  EXPECT_THAT(SettingsForOwnProgram(kJob, "f", {"model.kind=external"}),
              IsOkAndHolds(ElementsAre("model.kind=external")));
  EXPECT_THAT(SettingsForOwnProgram("model { kind: 'external' }", "f", {}),
              IsOkAndHolds(ElementsAre()));
}

// Before anything else of the job is looked at.
TEST(JobFileTest, OwnProgramOfABuiltInModelIsRefused) {
  const auto refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      AllOf(HasSubstr("model.kind is \"mlp\""), HasSubstr("or the command")));
  EXPECT_THAT(SettingsForOwnProgram("", "--set", {"model.kind=mlp"}), refused);
  EXPECT_THAT(SettingsForOwnProgram("model { kind: 'mlp' }", "f", {}), refused);
}

}  // namespace
}  // namespace lockstep::cli
