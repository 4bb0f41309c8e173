#include "chief/backups/member_news.h"

#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kPass = absl::Milliseconds(50);
constexpr absl::Duration kHeartbeat = absl::Seconds(1);

MembershipTable::Member Worker(int index, int64_t passes, absl::Duration pass,
                               absl::Time heard) {
  MembershipTable::Member member;
  member.task = {TaskType::kWorker, index};
  member.state = MembershipTable::State::kAlive;
  member.incarnation = 1;
  member.last_heartbeat = heard;
  member.progress.passes = passes;
  member.progress.pass_times = {{pass, false}};
  return member;
}

// Makes steps with both workers, of which the last needs 200 ms for a pass
// unless `alter` says otherwise, and returns what the tuner makes of them.
std::optional<BackupTuner::Change> Steps(
    const std::function<void(MembershipTable::Member&)>& alter,
    absl::Duration step_time = 4 * kPass) {
  BackupTuner tuner(absl::Seconds(2));
  absl::Time now = absl::UnixEpoch();
  for (int64_t step = 1; step < 100; ++step) {
    now += step_time;
    std::vector<MembershipTable::Member> members = {
        Worker(0, step, kPass, now), Worker(1, step, 4 * kPass, now)};
    alter(members[1]);
    HearMembers(members, kHeartbeat, now, tuner);
    if (auto change = tuner.AtBoundary(step, 2, {0, 1}, now)) return change;
  }
  return std::nullopt;
}

TEST(MemberNewsTest, TunerHearsThePassesOfWorkers) {
  const auto change = Steps([](MembershipTable::Member&) {});
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->replicas, 1);
}

TEST(MemberNewsTest, OtherTasksHaveNoPasses) {
  // Without news of worker 1 it is away, and one gradient is all there is.
  const auto change = Steps([](MembershipTable::Member& member) {
    member.task = {TaskType::kPs, 1};
  });
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->replicas, 1);
}

// Its pass has lasted as long as its last heartbeat is old, and more.
TEST(MemberNewsTest, SilenceCountsAsTimeOfThePassAtHand) {
  const auto change = Steps([](MembershipTable::Member& member) {
    member.progress.pass_times = {{kPass, false}};
    if (member.progress.passes < 50) return;
    member.progress.pass_age = kPass;
    member.last_heartbeat -= absl::Seconds(3);
  });
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->replicas, 1);
}

// Between two heartbeats passes end of which the chief does not know yet.
TEST(MemberNewsTest, TimeSinceTheLastHeartbeatIsNoTimeOfAPass) {
  EXPECT_FALSE(Steps(
                   [](MembershipTable::Member& member) {
                     member.progress.pass_times = {{kPass, false}};
                     member.progress.pass_age = kPass / 2;
                     member.last_heartbeat -= absl::Milliseconds(1800);
                   },
                   kPass)
                   .has_value());
}

// The tuner would keep a backup for workers that are often lost.
TEST(MemberNewsTest, WorkersThatAreSentBackAreNotLost) {
  constexpr int kWorkers = 8;
  BackupTuner tuner(absl::Seconds(2));
  absl::Time now = absl::UnixEpoch();
  std::vector<int> workers(kWorkers);
  std::iota(workers.begin(), workers.end(), 0);
  for (int64_t step = 1; step < 100; ++step) {
    now += kPass;
    std::vector<MembershipTable::Member> members;
    for (const int worker : workers) {
      members.push_back(Worker(worker, step, kPass, now));
      if (step < 50) continue;
      MembershipTable::Member& member = members.back();
      if (step > 50) {
        member.incarnation = 2;
      } else {
        member.state = MembershipTable::State::kDead;
        member.sent_back = true;
      }
    }
    HearMembers(members, kHeartbeat, now, tuner);
    // The servers stand still until all are back.
    if (step == 50) continue;
    EXPECT_FALSE(tuner.AtBoundary(step, kWorkers, workers, now).has_value());
  }
}

TEST(MemberNewsTest, EqualWorkersNeedNoChange) {
  EXPECT_FALSE(Steps([](MembershipTable::Member& member) {
                 member.progress.pass_times = {{kPass, false}};
               }).has_value());
}

}  // namespace
}  // namespace lockstep::chief
