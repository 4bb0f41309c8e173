#include "deploy/cli/simulate/pass_law.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

std::vector<double> Draws(const PassLaw& law, uint64_t seed = 3) {
  std::mt19937_64 random(seed);
  std::vector<double> draws;
  for (int i = 0; i < 20001; ++i) draws.push_back(law.Draw(random));
  return draws;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double MeanOf(absl::string_view text) {
  return PassLaw::Parse(text)->MeanOfDraws();
}

TEST(PassLawTest, LawsHaveTheirMeans) {
  EXPECT_NEAR(MeanOf("constant(50ms)"), 0.05, 1e-9);
  EXPECT_NEAR(MeanOf(" 50ms "), 0.05, 1e-9);
  EXPECT_NEAR(MeanOf("normal(50ms, 5ms)"), 0.05, 0.0005);
  EXPECT_NEAR(MeanOf("lognormal(50ms, 0.3)"), 0.05 * std::exp(0.045), 0.001);
  EXPECT_NEAR(MeanOf("exponential(50ms)"), 0.05, 0.003);
  EXPECT_NEAR(MeanOf("pareto(50ms, 5)"), 0.0625, 0.001);
}

TEST(PassLawTest, LawsHaveTheirSpreads) {
  EXPECT_NEAR(Median(Draws(*PassLaw::Parse("lognormal(50ms, 1)"))), 0.05,
              0.002);
  EXPECT_NEAR(Median(Draws(*PassLaw::Parse("exponential(50ms)"))),
              0.05 * std::log(2.0), 0.001);
  const std::vector<double> pareto = Draws(*PassLaw::Parse("pareto(50ms, 2)"));
  EXPECT_NEAR(Median(pareto), 0.05 * std::sqrt(2.0), 0.002);
  EXPECT_GE(*std::min_element(pareto.begin(), pareto.end()), 0.05);
  EXPECT_NEAR(Median(Draws(*PassLaw::Parse("normal(50ms, 25ms)"))), 0.05,
              0.002);
}

TEST(PassLawTest, PassesAreLongerThanNothing) {
  const std::vector<double> draws = Draws(*PassLaw::Parse("normal(2s, 1s)"));
  EXPECT_GT(*std::min_element(draws.begin(), draws.end()), 0);
}

TEST(PassLawTest, EqualSeedsGiveEqualPasses) {
  const PassLaw law = *PassLaw::Parse("lognormal(50ms, 0.3)");
  EXPECT_EQ(Draws(law), Draws(law));
  EXPECT_NE(Draws(law, 3), Draws(law, 4));
}

TEST(PassLawTest, EmpiricalDrawsTimesOfTheTrace) {
  const std::vector<double> draws = Draws(PassLaw::Empirical({1, 2, 4}));
  EXPECT_NEAR(std::count(draws.begin(), draws.end(), 2.0), 6667, 300);
}

// Each of up to 100000 workers has a copy of its law.
TEST(PassLawTest, CopiesShareTheTrace) {
  const PassLaw law = PassLaw::Empirical({1, 2, 4});
  const std::vector<PassLaw> copies(2, law);
  ASSERT_NE(law.trace(), nullptr);
  EXPECT_EQ(copies[0].trace(), law.trace());
  EXPECT_EQ(copies[1].trace(), law.trace());
  EXPECT_EQ(Draws(copies[0]), Draws(law));
}

// One pass of a thousand may decide about the mean.
TEST(PassLawTest, EmpiricalMeanIsThatOfTheTrace) {
  std::vector<double> trace(999, 0.05);
  trace.push_back(50);
  EXPECT_NEAR(PassLaw::Empirical(trace).MeanOfDraws(), 0.09995, 1e-9);
  EXPECT_DOUBLE_EQ(PassLaw::Empirical({0, 1e9}).MeanOfDraws(),
                   (1e-6 + 1e6) / 2);
}

TEST(PassLawTest, OtherFormsAreRefusedWithTheReason) {
  for (const char* text :
       {"", "lognormal", "lognormal(50ms)", "lognormal(50ms, 0.3",
        "uniform(1s)", "constant(50)", "constant(-1s)", "constant(0s)",
        "constant(inf)", "constant(1s, 2)", "lognormal(50ms, 0)",
        "lognormal(50ms, nan)", "pareto(1s, -2)", "normal(1s, 0.1)",
        "normal(50ms, 26ms)", "exponential(99999999h)"}) {
    const auto law = PassLaw::Parse(text);
    EXPECT_EQ(law.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(law.status().message(), HasSubstr("must be")) << text;
  }
  for (const char* text : {"0ms", "-5ms", "2000000s", "inf"}) {
    EXPECT_EQ(PassLaw::Parse(text).status().message(),
              absl::StrCat("\"", text,
                           "\" must be a duration above 0 and of "
                           "at most 1000000s"));
  }
}

TEST(SlowWorkersTest, CountAndFactorAreRead) {
  const auto slow = ParseSlowWorkers("3x4.5");
  ASSERT_OK(slow);
  EXPECT_EQ(slow->count, 3);
  EXPECT_EQ(slow->factor, 4.5);
  for (const char* text : {"", "3", "x", "3x", "x4", "-1x2", "3x0", "3x-1",
                           "3xinf", "3x4x5", "0x4", "9999999999x2"}) {
    EXPECT_THAT(ParseSlowWorkers(text).status().message(), HasSubstr("3x4"))
        << text;
  }
}

TEST(RateTest, EventsInATimeAreRead) {
  EXPECT_DOUBLE_EQ(*ParseRate("1/h"), 1.0 / 3600);
  EXPECT_DOUBLE_EQ(*ParseRate("2/30s"), 2.0 / 30);
  EXPECT_EQ(*ParseRate("0/h"), 0);
  EXPECT_DOUBLE_EQ(*ParseRate("1/1ms"), 1000);
  for (const char* text : {"", "1", "1/", "/h", "-1/h", "1/0s", "1/x", "nan/h",
                           "1001/s", "1000000/1ns"}) {
    EXPECT_THAT(ParseRate(text).status().message(), HasSubstr("1/h")) << text;
  }
}

}  // namespace
}  // namespace lockstep::cli
