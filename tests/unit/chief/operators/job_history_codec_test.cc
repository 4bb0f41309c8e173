#include "chief/operators/job_history_codec.h"

#include <limits>
#include <string>

#include "common/plan/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::Optional;
using ::testing::SizeIs;

constexpr absl::Time kSent = absl::FromUnixSeconds(1000);
constexpr absl::Time kReceived = absl::FromUnixSeconds(5000);

TEST(JobHistoryCodecTest, AgesAreKeptWhereClocksDiffer) {
  StatusTable::History history;
  history.training_time = absl::Seconds(90);
  history.deaths.push_back({.task = "worker 1",
                            .reason = "silent",
                            .held = "a token",
                            .redone = "step 7",
                            .at = kSent - absl::Seconds(30),
                            .stood_still = absl::Seconds(2)});
  history.losses = {1, 2, 3, absl::Seconds(4)};
  history.training = true;

  const StatusTable::History found =
      HistoryFromProto(HistoryToProto(history, kSent), kReceived);

  EXPECT_EQ(found.training_time, absl::Seconds(90));
  ASSERT_THAT(found.deaths, SizeIs(1));
  EXPECT_EQ(found.deaths[0].task, "worker 1");
  EXPECT_EQ(found.deaths[0].reason, "silent");
  EXPECT_EQ(found.deaths[0].held, "a token");
  EXPECT_EQ(found.deaths[0].redone, "step 7");
  EXPECT_EQ(found.deaths[0].at, kReceived - absl::Seconds(30));
  EXPECT_THAT(found.deaths[0].stood_still, Optional(absl::Seconds(2)));
  EXPECT_EQ(found.losses.recoveries, 1);
  EXPECT_EQ(found.losses.steps_redone, 2);
  EXPECT_EQ(found.losses.steps_repeated, 3);
  EXPECT_EQ(found.losses.stood_still, absl::Seconds(4));
  EXPECT_TRUE(found.training);
}

TEST(JobHistoryCodecTest, ImpossibleValuesAreLeftOut) {
  v1::JobHistory proto;
  proto.mutable_training_time()->set_seconds(-5);
  proto.mutable_losses()->set_recoveries(-1);
  proto.mutable_losses()->set_steps_redone(-1);
  proto.mutable_losses()->set_steps_repeated(-1);
  for (size_t i = 0; i < StatusTable::kDeaths + 5; ++i) {
    v1::DeathStatus& death = *proto.add_deaths();
    // A character of two bytes stands where the text is cut.
    death.set_reason(std::string(1023, 'x') + "\u00e9" +
                     std::string(5000, 'x'));
    death.mutable_since()->set_seconds(-5);
  }

  const StatusTable::History found = HistoryFromProto(proto, kReceived);

  EXPECT_EQ(found.training_time, absl::ZeroDuration());
  EXPECT_EQ(found.losses.recoveries, 0);
  EXPECT_EQ(found.losses.steps_redone, 0);
  EXPECT_EQ(found.losses.steps_repeated, 0);
  ASSERT_THAT(found.deaths, SizeIs(StatusTable::kDeaths));
  EXPECT_EQ(found.deaths[0].reason, std::string(1023, 'x') + "...");
  EXPECT_EQ(found.deaths[0].at, kReceived);
}

// A chief adds its own losses to those of its predecessors.
TEST(JobHistoryCodecTest, NoSumOfLossesOverflows) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  v1::JobHistory proto;
  proto.mutable_losses()->set_recoveries(kLargest);
  proto.mutable_losses()->set_steps_redone(kLargest);
  proto.mutable_losses()->set_steps_repeated(kLargest);

  const StatusTable::History found = HistoryFromProto(proto, kReceived);

  EXPECT_EQ(found.losses.recoveries, Progress::kMostCounted);
  EXPECT_EQ(found.losses.steps_redone, Progress::kMostCounted);
  EXPECT_EQ(found.losses.steps_repeated, Progress::kMostCounted);
}

TEST(JobHistoryCodecTest, BytesThatAreNoTextAreEscaped) {
  StatusTable::History history;
  history.deaths.push_back({.task = "worker 1",
                            .reason = "no file \xff\xfe",
                            .held = "caf\u00e9",
                            .redone = "\xc3"});

  const v1::JobHistory proto = HistoryToProto(history, kSent);

  EXPECT_EQ(proto.deaths(0).reason(), "no file \\xff\\xfe");
  EXPECT_EQ(proto.deaths(0).held(), "caf\u00e9");
  EXPECT_EQ(proto.deaths(0).redone(), "\\xc3");
}

}  // namespace
}  // namespace lockstep::chief
