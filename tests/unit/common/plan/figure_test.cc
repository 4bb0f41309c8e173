#include "common/plan/figure.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(FigureTest, FiguresWithPlainNamesAndFiniteNumbersAreAccepted) {
  EXPECT_THAT(CheckFigures({}), IsOk());
  EXPECT_THAT(CheckFigures({{"test_accuracy", 0.5}, {"top-5/a.b", -1e300}}),
              IsOk());
  EXPECT_THAT(CheckFigures({{std::string(64, 'x'), 0}}), IsOk());
}

TEST(FigureTest, NamesThatCannotBeAreRefused) {
  for (const std::string& name :
       {std::string(), std::string(65, 'x'), std::string("a b"),
        std::string("a\n"), std::string("\xc3\xa9"), std::string("a\"")}) {
    EXPECT_THAT(CheckFigures({{name, 1}}),
                StatusIs(kInvalid, HasSubstr("the name of a figure is \"")))
        << name;
  }
}

TEST(FigureTest, OtherThanFiniteNumbersRepetitionsAndTooManyAreRefused) {
  EXPECT_THAT(CheckFigures({{"x", std::numeric_limits<double>::infinity()}}),
              StatusIs(kInvalid, HasSubstr("finite")));
  EXPECT_THAT(CheckFigures({{"x", std::numeric_limits<double>::quiet_NaN()}}),
              StatusIs(kInvalid, HasSubstr("finite")));
  EXPECT_THAT(CheckFigures({{"x", 1}, {"y", 1}, {"x", 1}}),
              StatusIs(kInvalid, HasSubstr("\"x\" was reported twice")));
  std::vector<NamedFigure> many;
  for (size_t i = 0; i < kMostFigures; ++i) {
    many.push_back({std::to_string(i), 0});
  }
  EXPECT_THAT(CheckFigures(many), IsOk());
  many.push_back({"more", 0});
  EXPECT_THAT(CheckFigures(many), StatusIs(kInvalid, HasSubstr("17 figures")));
}

}  // namespace
}  // namespace lockstep
