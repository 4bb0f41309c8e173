#include "common/json/strict_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr JsonLimits kLimits = {/*max_bytes=*/64, /*max_depth=*/3};

TEST(StrictJsonTest, SoundTextIsParsed) {
  auto json = ParseStrictJson(R"({"a": [1, 2.5, "x", null, true]})", kLimits);

  ASSERT_OK(json);
  EXPECT_EQ((*json)["a"][0], 1);
  EXPECT_EQ((*json)["a"][1], 2.5);
  EXPECT_EQ((*json)["a"].size(), 5u);
}

TEST(StrictJsonTest, MalformedTextIsRefusedWithItsPlace) {
  for (const char* text : {"", "{", "{]", "[1,]", "nul", "{\"a\" 1}", "1 2",
                           "\"\xff\"", "1e999", "{} x", "NaN", "// c\n1"}) {
    EXPECT_THAT(ParseStrictJson(text, kLimits),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("not valid JSON at byte")))
        << text;
  }
}

TEST(StrictJsonTest, RepeatedKeyIsRefused) {
  EXPECT_THAT(ParseStrictJson(R"({"a": 1, "b": 2, "a": 1})", kLimits),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("key \"a\" appears twice")));
}

TEST(StrictJsonTest, KeyMayRepeatInAnotherObject) {
  EXPECT_OK(ParseStrictJson(R"({"a": {"a": 1}, "b": {"a": 2}})", kLimits));
}

TEST(StrictJsonTest, RepeatedKeyIsFoundAfterANestedObject) {
  EXPECT_THAT(ParseStrictJson(R"({"a": {"b": []}, "a": 2})", kLimits),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StrictJsonTest, DepthAtTheLimitIsReadAndBeyondItRefused) {
  EXPECT_OK(ParseStrictJson(R"([{"a": [1]}, [[]]])", kLimits));
  EXPECT_THAT(
      ParseStrictJson(R"([{"a": [[]]}])", kLimits),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deeper than 3")));
}

TEST(StrictJsonTest, DeepNestingCostsNoStack) {
  const JsonLimits limits = {/*max_bytes=*/1 << 20, /*max_depth=*/3};

  EXPECT_THAT(ParseStrictJson(std::string(1 << 20, '['), limits),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StrictJsonTest, LengthBeyondTheLimitIsRefused) {
  EXPECT_OK(ParseStrictJson(std::string(63, ' ') + "1", kLimits));
  EXPECT_THAT(ParseStrictJson(std::string(64, ' ') + "1", kLimits),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("65 bytes"), HasSubstr("64"))));
}

}  // namespace
}  // namespace lockstep
