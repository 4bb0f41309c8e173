#include "server/push_tally.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(PushTallyTest, PartsAreCountedByOutcome) {
  PushTally tally;
  tally.Count({.ticket = 1,
               .outcomes = {PushOutcome::kAccepted, PushOutcome::kAccepted,
                            PushOutcome::kStale}});
  tally.Count({.ticket = 2,
               .outcomes = {PushOutcome::kAccepted, PushOutcome::kDuplicate,
                            PushOutcome::kSuperseded}});
  const std::string text = FormatMetrics(tally.Metrics());
  for (const char* line :
       {"{outcome=\"accepted\"} 3\n", "{outcome=\"stale\"} 1\n",
        "{outcome=\"duplicate\"} 1\n", "{outcome=\"superseded\"} 1\n"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(line));
  }
}

}  // namespace
}  // namespace lockstep
