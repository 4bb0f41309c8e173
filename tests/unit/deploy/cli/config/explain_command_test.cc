#include "deploy/cli/config/explain_command.h"

#include "gmock/gmock.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExplainCommandTest : public testing::CommandTest {
 protected:
  int Explain(const std::vector<std::string>& args) {
    return Run<ExplainCommand>("explain", args);
  }
};

TEST_F(ExplainCommandTest, AFieldHasItsTextAndItsDefault) {
  EXPECT_EQ(Explain({"learning_rate"}), 0);
  EXPECT_THAT(Out(), AllOf(HasSubstr("learning_rate: number\n"),
                           HasSubstr("default: 0.01\n"),
                           HasSubstr("--set learning_rate=VALUE\n")));
}

TEST_F(ExplainCommandTest, WithoutAFieldAllAreListed) {
  EXPECT_EQ(Explain({}), 0);
  EXPECT_THAT(Out(), AllOf(HasSubstr("  train_steps "), HasSubstr("  model ")));
}

TEST_F(ExplainCommandTest, AnUnknownFieldIsAUsageError) {
  EXPECT_EQ(Explain({"model.hidden_unit"}), 2);
  EXPECT_THAT(Err(), HasSubstr("did you mean model.hidden_units?"));
}

TEST_F(ExplainCommandTest, TheManualPageIsRoff) {
  EXPECT_EQ(Explain({"--manual_page"}), 0);
  EXPECT_THAT(Out(), HasSubstr(".TH LOCKSTEP\\-JOB 5"));
}

}  // namespace
}  // namespace lockstep::cli
