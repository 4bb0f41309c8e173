#include "chief/steps/worker_burials.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;

class WorkerBurialsTest : public ::testing::Test {
 protected:
  static MembershipTable::Dead Dead(int worker, uint64_t incarnation = 1) {
    return {{TaskType::kWorker, worker}, incarnation, "silent"};
  }
  // Begins, and returns how many calls that asks for.
  size_t Begin(const MembershipTable::Dead& dead) {
    out_.clear();
    burials_.Begin(dead, /*round=*/1, now_, out_);
    return out_.size();
  }
  absl::StatusOr<WorkerBurials::Heard> Answer(
      int server, int worker, const absl::StatusOr<ShardCalls::Expired>& answer,
      int64_t round = 1) {
    out_.clear();
    return burials_.OnAnswer({round, server, worker, answer}, {0, 1, 2}, now_,
                             out_);
  }

  WorkerBurials burials_{/*max_workers=*/4};
  absl::Time now_ = absl::UnixEpoch();
  JobActions out_;
};

TEST_F(WorkerBurialsTest, PsZeroDecidesThenAllOthersAreAskedAtOnce) {
  ASSERT_EQ(Begin(Dead(2, 5)), 1U);
  EXPECT_EQ(std::get<Expire>(out_[0]).server, 0);
  EXPECT_EQ(std::get<Expire>(out_[0]).incarnation, 5U);

  const auto heard = Answer(0, 2, ShardCalls::Expired{true, false, 7, 3, 5});
  ASSERT_OK(heard);
  EXPECT_EQ(heard->decided->attempt, 3);
  ASSERT_EQ(out_.size(), 2U);
  EXPECT_EQ(std::get<Expire>(out_[1]).server, 2);
  EXPECT_EQ(std::get<Expire>(out_[1]).step, 7);
  EXPECT_EQ(std::get<Expire>(out_[1]).attempt, 3);
}

TEST_F(WorkerBurialsTest, WorkerIsBuriedWithTheLastAnswer) {
  Begin(Dead(2));
  ASSERT_OK(Answer(0, 2, ShardCalls::Expired{true}));
  EXPECT_FALSE(Answer(2, 2, ShardCalls::Expired{})->buried.has_value());
  const auto heard = Answer(1, 2, ShardCalls::Expired{});
  ASSERT_OK(heard);
  EXPECT_EQ(heard->buried->task.index, 2);
  EXPECT_TRUE(heard->held.held_announcement);
}

TEST_F(WorkerBurialsTest, IncarnationThatPsZeroFoundIsTakenOutElsewhere) {
  Begin(Dead(2, 0));
  ASSERT_OK(Answer(0, 2, ShardCalls::Expired{false, false, 7, 3, 41}));
  EXPECT_EQ(std::get<Expire>(out_[0]).incarnation, 41U);
}

TEST_F(WorkerBurialsTest, WorkersAreBuriedSideBySideButOneIncarnationEach) {
  EXPECT_EQ(Begin(Dead(2, 5)), 1U);
  EXPECT_EQ(Begin(Dead(2, 6)), 0U);
  EXPECT_EQ(Begin(Dead(3, 6)), 1U);
}

TEST_F(WorkerBurialsTest, FailureOnAnyServerBeginsAnewAfterAPause) {
  Begin(Dead(2));
  ASSERT_OK(Answer(0, 2, ShardCalls::Expired{}));
  ASSERT_OK(Answer(1, 2, absl::UnavailableError("gone")));
  EXPECT_EQ(Begin(Dead(2)), 0U);  // ps 2 has yet to answer
  EXPECT_FALSE(Answer(2, 2, ShardCalls::Expired{})->buried.has_value());
  EXPECT_EQ(Begin(Dead(2)), 0U);
  now_ += Backoff::kFirstPause;
  EXPECT_EQ(Begin(Dead(2)), 1U);
}

TEST_F(WorkerBurialsTest, NewerChiefIsTold) {
  Begin(Dead(2));
  EXPECT_THAT(Answer(0, 2, absl::AbortedError("epoch 7")),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(WorkerBurialsTest, AnswersOfAnEarlierRoundAreOfNoInterest) {
  Begin(Dead(2));
  burials_.Forget();
  ASSERT_OK(Answer(0, 2, absl::AbortedError("epoch 7")));
  Begin(Dead(2));
  ASSERT_OK(Answer(0, 2, absl::AbortedError("epoch 7"), /*round=*/0));
}

TEST_F(WorkerBurialsTest, OneServerIsEnough) {
  WorkerBurials alone(/*max_workers=*/4);
  alone.Begin(Dead(1), 1, now_, out_);
  const auto heard =
      alone.OnAnswer({1, 0, 1, ShardCalls::Expired{}}, {0}, now_, out_);
  ASSERT_OK(heard);
  EXPECT_TRUE(heard->buried.has_value());
}

}  // namespace
}  // namespace lockstep::chief
