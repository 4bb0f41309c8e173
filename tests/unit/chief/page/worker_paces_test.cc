#include "chief/page/worker_paces.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using State = MembershipTable::State;

constexpr absl::Time kStart = absl::UnixEpoch();

MembershipTable::Member Worker(int index, int64_t passes, double waited) {
  MembershipTable::Member member;
  member.task = {TaskType::kWorker, index};
  member.state = State::kAlive;
  member.incarnation = 1;
  member.progress.passes = passes;
  member.progress.accepted = passes / 2;
  member.progress.waiting = absl::Seconds(waited);
  return member;
}

TEST(WorkerPacesTest, ASlowWorkerIsSlowByItsTimeWithoutWaits) {
  WorkerPaces paces;
  paces.Add(kStart, {Worker(0, 0, 0), Worker(1, 0, 0), Worker(2, 0, 0)});
  EXPECT_TRUE(paces.Get().empty());
  // All wait for the slowest, so that all make ten passes in ten seconds.
  paces.Add(kStart + absl::Seconds(10),
            {Worker(0, 10, 6), Worker(1, 10, 6), Worker(2, 10, 0)});
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
  paces.Add(kStart, {Worker(0, 0, 0), Worker(1, 0, 0)});
  paces.Add(kStart + absl::Seconds(10), {Worker(0, 10, 0), Worker(1, 100, 0)});
  for (int i = 1; i <= 20; ++i) {
    paces.Add(kStart + absl::Seconds(10 + i),
              {Worker(0, 10 + 10 * i, 0), Worker(1, 100 + 10 * i, 0)});
  }
  EXPECT_NEAR(paces.Get().at(0).busy_seconds, 0.1, 0.002);
}

TEST(WorkerPacesTest, ANewIncarnationBeginsAnewAndADeadOneHasNoPace) {
  WorkerPaces paces;
  MembershipTable::Member worker = Worker(0, 1000, 0);
  paces.Add(kStart, {worker});
  paces.Add(kStart + absl::Seconds(1), {Worker(0, 1010, 0)});
  EXPECT_EQ(paces.Get().size(), 1u);
  worker = Worker(0, 1, 0);
  worker.incarnation = 2;
  paces.Add(kStart + absl::Seconds(2), {worker});
  EXPECT_TRUE(paces.Get().empty());
  worker.progress.passes = 3;
  paces.Add(kStart + absl::Seconds(3), {worker});
  EXPECT_NEAR(paces.Get().at(0).busy_seconds, 0.5, 1e-9);
  worker.state = State::kDead;
  paces.Add(kStart + absl::Seconds(4), {worker});
  EXPECT_TRUE(paces.Get().empty());
}

}  // namespace
}  // namespace lockstep::chief
