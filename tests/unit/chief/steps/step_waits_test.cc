#include "chief/steps/step_waits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;

auto Waits(const std::string& owner, const std::string& waits_for) {
  return AllOf(Field(&StatusTable::Wait::owner, owner),
               Field(&StatusTable::Wait::waits_for, waits_for));
}

StepWaits Of(std::vector<std::string> servers, std::string workers) {
  return {.step = 7,
          .since = absl::FromUnixSeconds(3),
          .servers = std::move(servers),
          .workers = std::move(workers)};
}

TEST(StepWaitsTest, ServersThatAreNotPreparedWaitForWorkers) {
  const StepWaits waits = Of({"1 gradient", ""}, "worker 2 (gone)");

  EXPECT_THAT(waits.List(), ElementsAre(Waits("step 7 on ps 0",
                                              "1 gradient; worker 2 (gone)")));
  EXPECT_EQ(waits.List().front().since, absl::FromUnixSeconds(3));
  EXPECT_EQ(waits.Summary(), "worker 2 (gone)");
}

TEST(StepWaitsTest, ServerThatDoesNotAnswerIsNamedWithoutWorkers) {
  const StepWaits waits = Of({"", "an answer (ps 1 is in epoch 0)"}, "");

  EXPECT_THAT(waits.List(), ElementsAre(Waits("step 7 on ps 1",
                                              "an answer (ps 1 is in epoch "
                                              "0)")));
  EXPECT_EQ(waits.Summary(), "an answer (ps 1 is in epoch 0)");
}

TEST(StepWaitsTest, PreparedStepWaitsForItsCommit) {
  const StepWaits waits = Of({"", ""}, "");

  EXPECT_THAT(waits.List(),
              ElementsAre(Waits("step 7 on ps 0", "its commit by ps 0")));
  EXPECT_EQ(waits.Summary(), "its commit by ps 0");
}

}  // namespace
}  // namespace lockstep::chief
