#include "deploy/examples/clicks/clicks.h"

#include <cmath>
#include <vector>

#include "common/numeric/auc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr int kCount = 100'000;

TEST(ClicksTest, ImpressionsFollowFromTheSeed) {
  ClickModel one(1);
  ClickModel same(1);
  ClickModel other(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const Impression impression = one.Draw();
    const Impression again = same.Draw();
    EXPECT_EQ(impression.log_odds, again.log_odds);
    EXPECT_EQ(impression.clicked, again.clicked);
    differs |= impression.user != other.Draw().user;
  }
  EXPECT_TRUE(differs);
}

TEST(ClicksTest, ClicksAreAsOftenAsTheLogOddsSay) {
  ClickModel model(3);
  std::vector<double> expected(10);
  std::vector<double> clicked(10);
  for (int i = 0; i < kCount; ++i) {
    const Impression impression = model.Draw();
    const double p = 1 / (1 + std::exp(-impression.log_odds));
    const auto bin = static_cast<size_t>(10 * p);
    expected[bin] += p;
    clicked[bin] += impression.clicked ? 1 : 0;
  }
  for (size_t bin = 0; bin < expected.size(); ++bin) {
    // Five standard deviations.
    EXPECT_NEAR(clicked[bin], expected[bin], 5 * std::sqrt(expected[bin]))
        << bin;
  }
}

TEST(ClicksTest, WhatIsNotWideTellsMoreApart) {
  ClickModel model(1);
  std::vector<ScoredExample> all;
  std::vector<ScoredExample> wide;
  for (int i = 0; i < kCount; ++i) {
    const Impression impression = model.Draw();
    all.emplace_back(impression.log_odds, impression.clicked);
    wide.emplace_back(impression.wide_log_odds, impression.clicked);
  }
  EXPECT_GT(*AreaUnderCurve(all), *AreaUnderCurve(wide) + 0.05);
}

TEST(ClicksTest, CategoriesAreEquallyFrequent) {
  ClickModel model(1);
  std::vector<int> devices(ClickModel::kDevices);
  for (int i = 0; i < kCount; ++i) {
    const Impression impression = model.Draw();
    ++devices.at(impression.device);
    ASSERT_TRUE(impression.user >= 0 && impression.user < ClickModel::kUsers);
    ASSERT_TRUE(impression.ad >= 0 && impression.ad < ClickModel::kAds);
    ASSERT_TRUE(impression.site >= 0 && impression.site < ClickModel::kSites);
  }
  for (const int count : devices) {
    EXPECT_NEAR(count, kCount / ClickModel::kDevices, 700);
  }
}

TEST(ClicksTest, ExamplesHaveAllFeaturesButTheOdds) {
  const TfExample example = ToExample({.user = 7,
                                       .ad = 8,
                                       .site = 9,
                                       .device = 2,
                                       .hour = 0.25,
                                       .clicked = true,
                                       .log_odds = 5});
  EXPECT_EQ(example.size(), 6u);
  EXPECT_THAT(example.at("user").bytes, ElementsAre("user 7"));
  EXPECT_THAT(example.at("ad").ints, ElementsAre(8));
  EXPECT_THAT(example.at("site").bytes, ElementsAre("site 9"));
  EXPECT_THAT(example.at("device").ints, ElementsAre(2));
  EXPECT_THAT(example.at("hour").floats, ElementsAre(0.25f));
  EXPECT_THAT(example.at("clicked").ints, ElementsAre(1));
}

}  // namespace
}  // namespace lockstep
