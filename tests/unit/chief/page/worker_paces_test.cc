#include "chief/page/worker_paces.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using State = MembershipTable::State;

// The report of a worker at `second`.
MembershipTable::Member Worker(int index, int64_t passes, double waited,
                               double second = 0) {
  MembershipTable::Member member;
  member.task = {TaskType::kWorker, index};
  member.state = State::kAlive;
  member.incarnation = 1;
  member.last_heartbeat = absl::UnixEpoch() + absl::Seconds(second);
  member.progress.passes = passes;
  member.progress.accepted = passes / 2;
  member.progress.waiting = absl::Seconds(waited);
  return member;
}

TEST(WorkerPacesTest, ASlowWorkerIsSlowByItsTimeWithoutWaits) {
  WorkerPaces paces;
  paces.Add({Worker(0, 0, 0), Worker(1, 0, 0), Worker(2, 0, 0)});
  EXPECT_TRUE(paces.Get().empty());
  // All wait for the slowest, so that all make ten passes in ten seconds.
  paces.Add({Worker(0, 10, 6, 10), Worker(1, 10, 6, 10), Worker(2, 10, 0, 10)});
  const auto got = paces.Get();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_NEAR(got.at(0).busy_seconds, 0.4, 1e-9);
  EXPECT_NEAR(got.at(0).slowness, 1, 1e-9);
  EXPECT_NEAR(got.at(0).waiting_share, 0.6, 1e-9);
  EXPECT_NEAR(got.at(0).counted_share, 0.5, 1e-9);
  EXPECT_NEAR(got.at(2).slowness, 2.5, 1e-9);
}

TEST(WorkerPacesTest, AWorkerThatBecomesFastIsFastAfterSomeReports) {
  WorkerPaces paces;
  paces.Add({Worker(0, 0, 0), Worker(1, 0, 0)});
  paces.Add({Worker(0, 10, 0, 10), Worker(1, 100, 0, 10)});
  for (int i = 1; i <= 20; ++i) {
    paces.Add({Worker(0, 10 + 10 * i, 0, 10 + i),
               Worker(1, 100 + 10 * i, 0, 10 + i)});
  }
  EXPECT_NEAR(paces.Get().at(0).busy_seconds, 0.1, 0.002);
}

TEST(WorkerPacesTest, ANewIncarnationBeginsAnewAndADeadOneHasNoPace) {
  WorkerPaces paces;
  MembershipTable::Member worker = Worker(0, 1000, 0);
  paces.Add({worker});
  paces.Add({Worker(0, 1010, 0, 1)});
  EXPECT_EQ(paces.Get().size(), 1u);
  worker = Worker(0, 1, 0, 2);
  worker.incarnation = 2;
  paces.Add({worker});
  EXPECT_TRUE(paces.Get().empty());
  worker = Worker(0, 3, 0, 3);
  worker.incarnation = 2;
  paces.Add({worker});
  EXPECT_NEAR(paces.Get().at(0).busy_seconds, 0.5, 1e-9);
  worker.state = State::kDead;
  paces.Add({worker});
  EXPECT_TRUE(paces.Get().empty());
}

// Both make a pass a second, and report every ten seconds, at other times; the
// job is looked at every second.
TEST(WorkerPacesTest, WorkersThatReportSeldomAreAsFastAsTheyAre) {
  WorkerPaces paces;
  for (int second = 12; second <= 32; ++second) {
    const int first = second / 10 * 10;
    const int other = (second - 3) / 10 * 10 + 3;
    paces.Add({Worker(0, first, 0, first), Worker(1, other, 0, other)});
    for (const auto& [worker, pace] : paces.Get()) {
      EXPECT_NEAR(pace.busy_seconds, 1, 1e-9) << worker << " at " << second;
      EXPECT_NEAR(pace.slowness, 1, 1e-9) << worker << " at " << second;
    }
  }
  EXPECT_EQ(paces.Get().size(), 2u);
}

}  // namespace
}  // namespace lockstep::chief
