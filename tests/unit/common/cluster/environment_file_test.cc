#include "common/cluster/environment_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<Environment> Read(absl::string_view text) {
  return ParseEnvironmentFile(text, "env");
}

TEST(EnvironmentFileTest, PlainLinesAreVariables) {
  EXPECT_THAT(Read("A=1\n  B = two words \r\n\nC=\nD=last"),
              IsOkAndHolds(ElementsAre(Pair("A", "1"), Pair("B", "two words"),
                                       Pair("C", ""), Pair("D", "last"))));
}

TEST(EnvironmentFileTest, CommentsAreSkipped) {
  EXPECT_THAT(Read("# TF_CONFIG=x\n ; y\\\n still a comment\nA=1 # value\n"),
              IsOkAndHolds(ElementsAre(Pair("A", "1 # value"))));
}

TEST(EnvironmentFileTest, JsonNeedsNoQuotes) {
  EXPECT_THAT(Read("TF_CONFIG={\"task\": {\"index\": 0}}\n"),
              IsOkAndHolds(ElementsAre(
                  Pair("TF_CONFIG", "{\"task\": {\"index\": 0}}"))));
}

TEST(EnvironmentFileTest, QuotesGoAndMaySpanLines) {
  EXPECT_THAT(
      Read("A='{\"a\":\n\\1}'\nB=\"x\\\"y\\\\z\\n\"\nC='a'\"b\"c\n"),
      IsOkAndHolds(ElementsAre(Pair("A", "{\"a\":\n\\1}"),
                               Pair("B", "x\"y\\z\\n"), Pair("C", "abc"))));
}

TEST(EnvironmentFileTest, ABackslashJoinsLinesAndKeepsSpaces) {
  EXPECT_THAT(Read("A=one\\\ntwo\nB=x\\ \nC=\"one\\\ntwo\"\n"),
              IsOkAndHolds(ElementsAre(Pair("A", "onetwo"), Pair("B", "x "),
                                       Pair("C", "onetwo"))));
}

TEST(EnvironmentFileTest, ARepeatedNameIsKeptInOrder) {
  EXPECT_THAT(Read("A=1\nA=2\n"),
              IsOkAndHolds(ElementsAre(Pair("A", "1"), Pair("A", "2"))));
}

TEST(EnvironmentFileTest, AnEmptyFileHasNoVariables) {
  EXPECT_THAT(Read(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Read("\n#"), IsOkAndHolds(IsEmpty()));
}

TEST(EnvironmentFileTest, MistakesAreNamedByLineWithoutTheValue) {
  EXPECT_THAT(Read("A=1\nsecret\n"),
              StatusIs(kInvalid, "env: line 2 has no '='; write NAME=VALUE"));
  EXPECT_THAT(Read("my A=1\n"),
              StatusIs(kInvalid,
                       "env: line 1 has a name with other characters than "
                       "A-Z, a-z, 0-9 and '_'; write NAME=VALUE"));
  EXPECT_THAT(Read("export A=1\n"),
              StatusIs(kInvalid,
                       "env: line 1 begins with export, which only a shell "
                       "knows; remove that word"));
  EXPECT_THAT(
      Read("\n\nA=\"secret\n\n"),
      StatusIs(kInvalid, "env: line 3 opens a quote \" that is not closed"));
}

}  // namespace
}  // namespace lockstep
