#include "common/json/bounded_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

std::string Nested(int depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(BoundedJsonTest, ReadsADocument) {
  EXPECT_THAT(ParseBoundedJson("{\"a\": [1, \"b\", null, true, 0.5]}", "f"),
              IsOkAndHolds(nlohmann::json::parse(
                  "{\"a\": [1, \"b\", null, true, 0.5]}")));
}

TEST(BoundedJsonTest, SkipsAByteOrderMark) {
  EXPECT_THAT(ParseBoundedJson("\xEF\xBB\xBF{}", "f"),
              IsOkAndHolds(nlohmann::json::object()));
}

TEST(BoundedJsonTest, EmptyTextNamesItsSource) {
  for (const char* text : {"", " \n\t", "\xEF\xBB\xBF"}) {
    EXPECT_THAT(ParseBoundedJson(text, "TF_CONFIG"),
                StatusIs(kInvalid, StartsWith("TF_CONFIG is empty")));
  }
}

TEST(BoundedJsonTest, SyntaxErrorGivesThePlaceAndNotTheText) {
  EXPECT_THAT(
      ParseBoundedJson("{\"a\": 1,\n \"password\": secret}", "job.json"),
      StatusIs(kInvalid, AllOf(StartsWith("job.json is not valid JSON at line "
                                          "2, column 14"),
                               Not(HasSubstr("secret")))));
}

TEST(BoundedJsonTest, BrokenTextsAreErrors) {
  for (const char* text : {"{", "}", "[1,]", "{\"a\"}", "nul", "01", "\"\xff\"",
                           "{} {}", "1e999", "\"\\ud800\"", "NaN", "1 2", "{]",
                           "'a'", "{a: 1}", "\"abc", "// comment\n{}"}) {
    EXPECT_THAT(ParseBoundedJson(text, "f"),
                StatusIs(kInvalid, HasSubstr("f is not valid JSON")))
        << text;
  }
}

TEST(BoundedJsonTest, RepeatedKeyIsAnErrorWithinOneObject) {
  EXPECT_THAT(ParseBoundedJson("{\"ps\": [1], \"ps\": [2]}", "f"),
              StatusIs(kInvalid, HasSubstr("the key \"ps\" twice")));
  EXPECT_OK(ParseBoundedJson("{\"a\": {\"b\": 1}, \"b\": {\"a\": 1}}", "f"));
}

TEST(BoundedJsonTest, DepthIsBounded) {
  EXPECT_OK(ParseBoundedJson(Nested(64), "f"));
  EXPECT_THAT(ParseBoundedJson(Nested(65), "f"),
              StatusIs(kInvalid, HasSubstr("deeper than 64 levels")));
  EXPECT_THAT(ParseBoundedJson(std::string(1'000'000, '['), "f"),
              StatusIs(kInvalid, HasSubstr("deeper than 64 levels")));
}

TEST(BoundedJsonTest, SizeIsBounded) {
  const std::string largest = "\"" + std::string(kMaxJsonBytes - 2, 'a') + "\"";

  EXPECT_OK(ParseBoundedJson(largest, "f"));
  EXPECT_THAT(ParseBoundedJson(largest + " ", "f"),
              StatusIs(kInvalid, HasSubstr("is longer than 4194304 bytes")));
}

TEST(BoundedJsonTest, ACallerMayHaveNarrowerLimits) {
  const JsonLimits limits = {.max_bytes = 64, .max_depth = 3};

  EXPECT_OK(ParseBoundedJson(R"([{"a": [1]}, [[]]])", "f", limits));
  EXPECT_THAT(ParseBoundedJson(R"([{"a": [[]]}])", "f", limits),
              StatusIs(kInvalid, HasSubstr("deeper than 3 levels")));
  EXPECT_OK(ParseBoundedJson(std::string(63, ' ') + "1", "f", limits));
  EXPECT_THAT(ParseBoundedJson(std::string(64, ' ') + "1", "f", limits),
              StatusIs(kInvalid, HasSubstr("is longer than 64 bytes")));
}

TEST(BoundedJsonTest, RepeatedKeyIsFoundAfterANestedObject) {
  EXPECT_THAT(ParseBoundedJson(R"({"a": {"b": []}, "a": 2})", "f"),
              StatusIs(kInvalid, HasSubstr("the key \"a\" twice")));
}

TEST(ShowJsonTest, LongValuesAreCut) {
  EXPECT_EQ(ShowJson(nlohmann::json::array({1, "a"})), R"([1,"a"])");
  EXPECT_EQ(ShowJson(std::string(100, 'a')),
            "\"" + std::string(63, 'a') + "...");
}

TEST(ShowJsonTest, CharactersAreNotCut) {
  // The byte after the cut continues the character before it.
  EXPECT_EQ(ShowJson(std::string(62, 'a') + "\xC3\xA9z"),
            "\"" + std::string(62, 'a') + "...");
  EXPECT_EQ(ShowJson(std::string(61, 'a') + "\xC3\xA9z"),
            "\"" + std::string(61, 'a') + "\xC3\xA9...");
}

TEST(DescribeJsonTest, SaysWhatAValueIsInFewWords) {
  EXPECT_EQ(DescribeJson("text"), "\"text\"");
  EXPECT_EQ(DescribeJson(7), "7");
  EXPECT_EQ(DescribeJson(nullptr), "null");
  EXPECT_EQ(DescribeJson(nlohmann::json::object()), "an object");
  EXPECT_EQ(DescribeJson(nlohmann::json::array({"secret"})), "an array");
}

}  // namespace
}  // namespace lockstep
