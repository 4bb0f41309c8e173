#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/protocol/strict_simulation.h"

namespace lockstep {
namespace {

using ::testing::IsEmpty;

constexpr uint32_t kSchedules = 2500;  // of each kind of cluster

std::string NameOf(
    const ::testing::TestParamInfo<StrictSimulation::Options>& info) {
  return absl::StrCat(info.param.replicas_to_aggregate, "of",
                      info.param.total_num_replicas, "on",
                      info.param.parts.size());
}

// The promises that StrictSimulation looks after, in many random runs.
class StrictProtocolTest
    : public ::testing::TestWithParam<StrictSimulation::Options> {};

TEST_P(StrictProtocolTest,
       PromisesHoldWhateverIsRepeatedDelayedReplacedOrKilled) {
  int64_t deaths = 0;
  int64_t redone = 0;
  int64_t replaced = 0;
  for (uint32_t seed = 1; seed <= kSchedules; ++seed) {
    StrictSimulation simulation(GetParam(), seed);

    simulation.Run();

    ASSERT_THAT(simulation.broken(), IsEmpty()) << "seed " << seed;
    deaths += simulation.deaths();
    redone += simulation.redone_attempts();
    replaced += simulation.replaced();
  }
  // The runs were no walk in the park.
  EXPECT_GT(deaths, kSchedules / 2);
  const int n = GetParam().total_num_replicas;
  if (n > 1 && n >= GetParam().replicas_to_aggregate) {
    EXPECT_GT(redone, kSchedules / 10);
  }
  if (n > GetParam().replicas_to_aggregate) {
    EXPECT_GT(replaced, kSchedules / 20);
  }
}

TEST_P(StrictProtocolTest, EveryStepTakesOneAttemptWhereNothingGoesWrong) {
  StrictSimulation::Options options = GetParam();
  options.chaos_events = 0;
  for (uint32_t seed = 1; seed <= kSchedules / 10; ++seed) {
    StrictSimulation simulation(options, seed);

    simulation.Run();

    ASSERT_THAT(simulation.broken(), IsEmpty()) << "seed " << seed;
    EXPECT_EQ(simulation.redone_attempts(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, StrictProtocolTest,
    ::testing::Values(
        StrictSimulation::Options{2, 2, {2, 1}},     // everybody counts
        StrictSimulation::Options{2, 3, {2, 1}},     // one backup
        StrictSimulation::Options{2, 4, {1, 0}},     // a server without parts
        StrictSimulation::Options{1, 1, {1, 1, 1}},  // alone
        StrictSimulation::Options{3, 2, {2, 1}},     // shares: two and one
        StrictSimulation::Options{4, 2, {1, 1}}),    // shares: two each
    NameOf);

}  // namespace
}  // namespace lockstep
