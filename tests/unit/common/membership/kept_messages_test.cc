#include "common/membership/kept_messages.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

const absl::Time kNow = absl::UnixEpoch();

TEST(KeptMessagesTest, HistoryIsSentIfWantedAndAsOldAsItIs) {
  KeptMessages kept;
  v1::HeartbeatResponse answer;
  answer.mutable_history()->add_deaths()->mutable_since()->set_seconds(3);
  kept.TakeHistory(answer, kNow);
  v1::HeartbeatRequest unasked;
  kept.Fill(unasked, kNow);
  EXPECT_FALSE(unasked.has_history());

  v1::HeartbeatResponse question;
  question.set_history_wanted(true);
  kept.TakeHistory(question, kNow + absl::Seconds(1));
  v1::HeartbeatRequest asked;
  kept.Fill(asked, kNow + absl::Seconds(5));

  ASSERT_TRUE(asked.has_history());
  EXPECT_EQ(asked.history().deaths(0).since().seconds(), 8);
}

TEST(KeptMessagesTest, WorkersAndJobFileAreRepeatedInEveryHeartbeat) {
  KeptMessages kept;
  kept.workers = {1, 3};
  kept.job_fingerprint = 17;
  for (int beat = 0; beat < 2; ++beat) {
    v1::HeartbeatRequest request;
    kept.Fill(request, kNow);
    EXPECT_THAT(request.workers(), ElementsAre(1, 3));
    EXPECT_EQ(request.job_fingerprint(), 17u);
  }
}

}  // namespace
}  // namespace lockstep
