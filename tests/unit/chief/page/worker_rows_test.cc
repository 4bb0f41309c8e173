#include "chief/page/worker_rows.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kHeartbeat = absl::Milliseconds(500);

MemberStatus Worker(int index, MemberState state = MemberState::kAlive) {
  WorkerCounts counts;
  counts.passes = 10;
  counts.accepted = 7;
  counts.stale = 3;
  counts.waiting = absl::Seconds(2);
  counts.activity = "computes step 5";
  counts.computes = true;
  return {.task = absl::StrCat("worker ", index),
          .state = state,
          .since_heartbeat = absl::Seconds(1),
          .counts = counts};
}

TEST(WorkerRowsTest, WhatStandsStillComesFirstThenWhatIsSlow) {
  JobStatus status;
  status.state = lockstep::JobState::kTraining;
  status.members = {{.task = "ps 0", .state = MemberState::kDead},
                    Worker(0),
                    Worker(1),
                    Worker(2),
                    Worker(3, MemberState::kDead),
                    Worker(4),
                    Worker(5)};
  status.members[5].since_heartbeat = absl::Seconds(9);        // worker 4
  status.members[6].counts->activity_age = absl::Seconds(30);  // worker 5
  const std::map<int, WorkerPace> paces = {{0, {0.1, 1, 0, 1}},
                                           {1, {0.16, 1.6, 0, 1}},
                                           {2, {0.3, 3, 0, 1}},
                                           {4, {0.1, 1, 0, 1}},
                                           {5, {0.1, 1, 0, 1}}};

  const std::vector<WorkerRow> rows = RankWorkers(status, paces, kHeartbeat);

  std::vector<std::string> told;
  for (const WorkerRow& row : rows) {
    told.push_back(absl::StrCat(row.member.task, ": ", row.trouble));
  }
  EXPECT_EQ(told,
            (std::vector<std::string>{
                "worker 3: dead", "worker 5: computes step 5 for 30 s",
                "worker 4: silent for 9.0 s", "worker 2: 3.0 times slower",
                "worker 1: 1.6 times slower", "worker 0: "}));
}

TEST(WorkerRowsTest, AWorkerBetweenTwoHeartbeatsIsNoTrouble) {
  JobStatus status;
  status.state = lockstep::JobState::kTraining;
  status.members = {Worker(0)};
  MemberStatus& worker = status.members[0];
  const std::map<int, WorkerPace> paces = {{0, {0.1, 1, 0, 1}}};
  const auto trouble = [&](absl::Duration since, absl::Duration interval) {
    worker.since_heartbeat = since;
    // At the heartbeat, the pass was a moment old.
    worker.counts->activity_age = since + absl::Milliseconds(100);
    return RankWorkers(status, paces, interval)[0].trouble;
  };
  EXPECT_EQ(trouble(absl::Seconds(8), absl::Seconds(10)), "");
  EXPECT_EQ(trouble(absl::Seconds(41), absl::Seconds(10)), "silent for 41 s");
  EXPECT_EQ(trouble(absl::Milliseconds(1500), kHeartbeat), "");
  // Heartbeats are missing, so the pass that it reported may go on.
  EXPECT_EQ(trouble(absl::Seconds(3), kHeartbeat), "computes step 5 for 3.1 s");
  // The heartbeat itself told of a long pass.
  worker.since_heartbeat = absl::Seconds(8);
  worker.counts->activity_age = absl::Seconds(38);
  EXPECT_EQ(RankWorkers(status, paces, absl::Seconds(10))[0].trouble,
            "computes step 5 for 38 s");
}

// The activity's text may be of any program.
TEST(WorkerRowsTest, AWorkerThatWaitsIsNotStuckWhateverItsTextSays) {
  JobStatus status;
  status.state = lockstep::JobState::kTraining;
  status.members = {Worker(0)};
  WorkerCounts& counts = *status.members[0].counts;
  counts.activity_age = absl::Seconds(38);
  counts.computes = false;
  const std::map<int, WorkerPace> paces = {{0, {0.1, 1, 0, 1}}};

  EXPECT_EQ(RankWorkers(status, paces, kHeartbeat)[0].trouble, "");
}

TEST(WorkerRowsTest, AWorkerThatIsNotThereYetOrHasLeftIsNoTrouble) {
  JobStatus status;
  status.state = lockstep::JobState::kStarting;
  status.members = {Worker(0, MemberState::kMissing),
                    Worker(1, MemberState::kLeft)};
  const std::vector<WorkerRow> rows = RankWorkers(status, {}, kHeartbeat);
  EXPECT_EQ(rows.size(), 2u);
  for (const WorkerRow& row : rows) {
    EXPECT_EQ(row.trouble, "") << row.member.task;
  }
  status.state = lockstep::JobState::kTraining;
  EXPECT_EQ(RankWorkers(status, {}, kHeartbeat)[0].trouble, "missing");
}

TEST(WorkerRowsTest, RestIsSummed) {
  JobStatus status;
  for (int i = 0; i < 5; ++i) status.members.push_back(Worker(i));
  const std::vector<WorkerRow> rows = RankWorkers(status, {}, kHeartbeat);
  const WorkerSum sum = SumRows(rows, 2);
  EXPECT_EQ(sum.workers, 3);
  EXPECT_EQ(sum.passes, 30);
  EXPECT_EQ(sum.accepted, 21);
  EXPECT_EQ(sum.stale, 9);
  EXPECT_EQ(sum.waiting, absl::Seconds(6));
}

}  // namespace
}  // namespace lockstep::chief
