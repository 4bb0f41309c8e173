#include "worker/client/exchange/retry_pause.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::Optional;

TEST(RetryPauseTest, DoublesUpToTheLongest) {
  RetryPause pause;
  const absl::Status away = absl::UnavailableError("no server");
  EXPECT_THAT(pause.After(away), Optional(absl::Milliseconds(100)));
  EXPECT_THAT(pause.After(absl::DeadlineExceededError("no answer")),
              Optional(absl::Milliseconds(200)));
  EXPECT_THAT(pause.After(away), Optional(absl::Milliseconds(300)));
  EXPECT_THAT(pause.After(away), Optional(RetryPause::kLongest));
}

TEST(RetryPauseTest, ACallThatWasRefusedIsNotRepeated) {
  RetryPause pause;
  EXPECT_EQ(pause.After(absl::InvalidArgumentError("no such part")),
            std::nullopt);
  EXPECT_EQ(pause.After(absl::AbortedError("an older incarnation")),
            std::nullopt);
}

}  // namespace
}  // namespace lockstep::worker
