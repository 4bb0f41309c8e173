#include "worker/session/session_variables.h"

#include <cstddef>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::byte kBytes[8] = {};

TEST(SessionVariablesTest, VariablesWithInitialValuesAreGivenAndOthersDrawn) {
  const std::vector<SessionVariable> variables = {
      {{.name = "w", .shape = {2}}, kBytes}, {{.name = "b", .shape = {2}}}};
  EXPECT_OK(CheckVariables(variables));
  const std::vector<VariableSpec> specs = SpecsOf(variables);
  ASSERT_THAT(specs, SizeIs(2));
  EXPECT_EQ(specs[0].initializer.kind, Initializer::Kind::kGiven);
  EXPECT_NE(specs[1].initializer.kind, Initializer::Kind::kGiven);
  const auto initial = InitialOf(variables);
  ASSERT_THAT(initial, SizeIs(2));
  EXPECT_EQ(initial[0].data(), kBytes);
  EXPECT_TRUE(initial[1].empty());
}

TEST(SessionVariablesTest, ImpossibleVariablesAreRefused) {
  const auto refused = [](const std::vector<SessionVariable>& variables,
                          const std::string& why) {
    EXPECT_THAT(CheckVariables(variables),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({}, "at least one variable");
  refused({{{.name = "w"}}, {{.name = "w"}}}, "two variables");
  refused({{{.name = "w"}}, {{.name = ""}}}, "no name; give it one");
  refused({{{.name = "w", .shape = {0}}}}, "above 0");
  refused({{{.name = "w", .shape = {3}}, kBytes}}, "needs 12");
  refused({{{.name = "t", .row_cut = RowCut::kMod}}}, "a table needs rows");
}

}  // namespace
}  // namespace lockstep::worker
