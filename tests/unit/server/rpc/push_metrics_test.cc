#include "server/rpc/push_metrics.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

PushAnswer Answer(std::vector<PushOutcome> outcomes) {
  PushAnswer answer;
  answer.outcomes = std::move(outcomes);
  return answer;
}

TEST(PushMetricsTest, PartsAreCountedByOutcome) {
  PushMetrics tally;
  tally.Count(Answer(
      {PushOutcome::kAccepted, PushOutcome::kAccepted, PushOutcome::kStale}));
  tally.Count(Answer({PushOutcome::kAccepted, PushOutcome::kDuplicate,
                      PushOutcome::kSuperseded}));
  const std::string text = tally.Metrics().ToText();
  for (const char* line :
       {"{outcome=\"accepted\"} 3\n", "{outcome=\"stale\"} 1\n",
        "{outcome=\"duplicate\"} 1\n", "{outcome=\"superseded\"} 1\n"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(line));
  }
}

}  // namespace
}  // namespace lockstep::server
