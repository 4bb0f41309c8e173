#include "common/flags/nearest_match.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const std::vector<std::string>& Flags() {
  static const auto* const flags = new std::vector<std::string>{
      "tf_config", "job", "state_dir", "log_level", "mlp"};
  return *flags;
}

TEST(NearestMatchTest, OneMissingLetterIsForgiven) {
  EXPECT_EQ(NearestMatch("tf_confg", Flags()), "tf_config");
}

TEST(NearestMatchTest, OneExtraLetterIsForgiven) {
  EXPECT_EQ(NearestMatch("joob", Flags()), "job");
}

TEST(NearestMatchTest, OneWrongLetterIsForgiven) {
  EXPECT_EQ(NearestMatch("jab", Flags()), "job");
}

TEST(NearestMatchTest, SwappedNeighboursAreOneMistake) {
  EXPECT_EQ(NearestMatch("jbo", Flags()), "job");
}

TEST(NearestMatchTest, CaseAndDashesDoNotCount) {
  EXPECT_EQ(NearestMatch("State-Dir", Flags()), "state_dir");
  EXPECT_EQ(NearestMatch("MLP", Flags()), "mlp");
}

TEST(NearestMatchTest, LongerNamesAllowMoreMistakes) {
  EXPECT_EQ(NearestMatch("tfconfg", Flags()), "tf_config");
  EXPECT_EQ(NearestMatch("jo_b_", Flags()), std::nullopt);
}

TEST(NearestMatchTest, NothingNearGivesNothing) {
  EXPECT_EQ(NearestMatch("resnet50", Flags()), std::nullopt);
  EXPECT_EQ(NearestMatch("", Flags()), std::nullopt);
  EXPECT_EQ(NearestMatch("job", {}), std::nullopt);
}

TEST(NearestMatchTest, NameThatSharesNoLetterIsNotNear) {
  EXPECT_EQ(NearestMatch("x", {"y"}), std::nullopt);
  EXPECT_EQ(NearestMatch("", {"y"}), std::nullopt);
}

TEST(NearestMatchTest, NearerCandidateWinsOverAnEarlierOne) {
  EXPECT_EQ(NearestMatch("log_levl", {"log_lever2", "log_level"}), "log_level");
}

TEST(NearestMatchTest, FirstOfEquallyNearCandidatesWins) {
  EXPECT_EQ(NearestMatch("cat", {"bat", "hat"}), "bat");
}

TEST(NearestMatchTest, EmptyCandidateIsNeverNear) {
  EXPECT_EQ(NearestMatch("a", {""}), std::nullopt);
}

TEST(NearestMatchTest, HugeNameIsAnsweredWithoutMuchWork) {
  EXPECT_EQ(NearestMatch(std::string(10'000'000, 'j'), Flags()), std::nullopt);
}

}  // namespace
}  // namespace lockstep
