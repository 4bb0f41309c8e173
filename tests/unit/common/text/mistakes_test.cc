#include "common/text/mistakes.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(MistakesTest, WithoutMistakesTheStatusIsOk) {
  Mistakes mistakes;
  mistakes.Add(absl::OkStatus());

  EXPECT_THAT(mistakes.status(), IsOk());
}

TEST(MistakesTest, EachHasALineInTheOrderOfTheirFinding) {
  Mistakes mistakes;
  mistakes.Add(absl::InvalidArgumentError("f: a is 1"));
  mistakes.Add(absl::OkStatus());
  mistakes.Add(absl::InvalidArgumentError("f: b is 2"));

  EXPECT_THAT(mistakes.status(), StatusIs(kInvalid, "f: a is 1\nf: b is 2"));
}

TEST(MistakesTest, ManyAreCounted) {
  Mistakes mistakes;
  for (size_t i = 0; i < Mistakes::kShown + 5; ++i) {
    mistakes.Add(absl::InvalidArgumentError(absl::StrCat("mistake ", i)));
  }

  const std::string text(mistakes.status().message());

  EXPECT_TRUE(absl::StrContains(text, "mistake 19\nand 5 more mistakes"));
  EXPECT_FALSE(absl::StrContains(text, "mistake 20"));
}

}  // namespace
}  // namespace lockstep
