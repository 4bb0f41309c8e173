#include "deploy/cli/config/job_field.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

JobField Some() {
  const JobField units = {.path = "model.units",
                          .type = "whole number",
                          .is_list = true,
                          .settable = true,
                          .doc = "Widths. More of them."};
  const JobField every = {.path = "model.every",
                          .type = "duration",
                          .settable = true,
                          .doc = "How often.",
                          .default_value = "1m"};
  const JobField model = {.path = "model",
                          .type = "group of fields",
                          .doc = "What is computed.",
                          .fields = {units, every}};
  const JobField mode = {.path = "mode",
                         .type = "name",
                         .settable = true,
                         .doc = ".5 of 'it'",
                         .default_value = "STRICT",
                         .values = {{"STRICT", "one set"}, {"OTHER", "two"}}};
  return {.fields = {mode, model}};
}

TEST(JobFieldTest, AListIsExplainedWithBothWaysToSetIt) {
  EXPECT_THAT(
      ExplainField(Some(), "model.units", 80),
      IsOkAndHolds("model.units: list of whole numbers\n\n"
                   "Widths. More of them.\n\n"
                   "in a job file: model { units: [VALUE, VALUE] }\n"
                   "on a command line: --set model.units=VALUE,VALUE\n"));
}

TEST(JobFieldTest, AListOfGroupsHasItsPlural) {
  const JobField rules = {.path = "rules",
                          .type = "group of fields",
                          .is_list = true,
                          .doc = "Rules of variables."};

  EXPECT_THAT(ExplainField({.fields = {rules}}, "rules", 80),
              IsOkAndHolds(HasSubstr("rules: list of groups of fields\n")));
}

TEST(JobFieldTest, ADurationHasItsDefault) {
  EXPECT_THAT(ExplainField(Some(), "model.every", 80),
              IsOkAndHolds(AllOf(HasSubstr("default: 1m\n"),
                                 HasSubstr("model { every: \"60s\" }"),
                                 HasSubstr("--set model.every=60s"))));
}

TEST(JobFieldTest, NamesAndGroupsListWhatTheyMayHold) {
  EXPECT_THAT(ExplainField(Some(), "mode", 80),
              IsOkAndHolds(HasSubstr("  STRICT  one set\n  OTHER   two\n")));
  EXPECT_THAT(ExplainField(Some(), "model", 80),
              IsOkAndHolds(AllOf(HasSubstr("  units  Widths.\n"),
                                 HasSubstr("in a job file: model { ... }"))));
  EXPECT_THAT(ExplainField(Some(), "", 80),
              IsOkAndHolds(HasSubstr("  model  What is computed.\n")));
}

TEST(JobFieldTest, AnUnknownFieldNamesOneThatIsNear) {
  EXPECT_THAT(ExplainField(Some(), "model.unit", 80),
              StatusIs(kInvalid,
                       "model has no field \"unit\"; did you mean "
                       "model.units?"));
  EXPECT_THAT(ExplainField(Some(), "zzzzzz", 80),
              StatusIs(kInvalid,
                       "a job file has no field \"zzzzzz\"; known are "
                       "mode, model"));
  EXPECT_THAT(ExplainField(Some(), "mode.x", 80),
              StatusIs(kInvalid, HasSubstr("holds no fields")));
  EXPECT_THAT(ExplainField(Some(), ".", 80), StatusIs(kInvalid));
}

TEST(JobFieldTest, AFieldOfAnotherGroupIsNamedWithItsPath) {
  EXPECT_THAT(ExplainField(Some(), "units", 80),
              StatusIs(kInvalid,
                       "a job file has no field \"units\"; did you mean "
                       "model.units?"));
  EXPECT_THAT(
      ExplainField(Some(), "model.mode", 80),
      StatusIs(kInvalid, "model has no field \"mode\"; did you mean mode?"));
}

TEST(JobFieldTest, LinesAreAsWideAsAsked) {
  const auto text = ExplainField(Some(), "model", 30);
  ASSERT_OK(text);
  for (const auto line : absl::StrSplit(*text, '\n')) {
    EXPECT_LE(line.size(), 30u) << line;
  }
}

TEST(JobFieldTest, TheManualPageHasEachFieldAndEscapesRoff) {
  const std::string page = JobManualPage(Some(), "1.2");

  EXPECT_THAT(page,
              AllOf(HasSubstr(".TH LOCKSTEP\\-JOB 5 \"\" \"lockstep 1.2\""),
                    HasSubstr("\\fBmode\\fR (name; default STRICT)\n\\&.5 of"),
                    HasSubstr("\\fBSTRICT\\fR: one set"),
                    HasSubstr(".SS \"model\"\nWhat is computed."),
                    HasSubstr("\\fBunits\\fR (list of whole numbers)"),
                    HasSubstr(".SH FILES"), HasSubstr(".SH SEE ALSO")));
}

}  // namespace
}  // namespace lockstep::cli
