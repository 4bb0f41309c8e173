#include "server/step/strict/part_work.h"

#include <cmath>
#include <set>

#include "common/base/mutex.h"
#include "common/numeric/parallel_blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Update = FakePartUpdater::Update_;

PartWork WorkOf(PartWork::Kind kind, float one, float other) {
  PartWork work;
  work.kind = kind;
  work.contributors = {{0, 0}, {3, 1}};
  work.gradients = {GradientOf(one), GradientOf(other)};
  return work;
}

TEST(PartWorkTest, MeanIsMeasuredAndThenApplied) {
  FakePartUpdater updater(1);
  PartWork work = WorkOf(PartWork::Kind::kMeasure, 1, 3);
  EXPECT_OK(Perform(updater, true, work));
  EXPECT_EQ(work.squares, 4);
  EXPECT_THAT(updater.updates(), IsEmpty());

  work.kind = PartWork::Kind::kApply;
  work.norm = 7;
  EXPECT_OK(Perform(updater, true, work));

  EXPECT_THAT(updater.updates(), ElementsAre(Update{0, 0, {2, 7}}));
}

TEST(PartWorkTest, GradientsThatAreNotFiniteAreFoundIfThatIsWanted) {
  for (const auto kind : {PartWork::Kind::kUpdate, PartWork::Kind::kMeasure}) {
    FakePartUpdater updater(1);
    PartWork work = WorkOf(kind, 1, NAN);
    EXPECT_OK(Perform(updater, false, work));
    EXPECT_THAT(work.refused, IsEmpty());
    EXPECT_OK(Perform(updater, true, work));
    EXPECT_THAT(work.refused,
                ElementsAre(Pair(Contributor(3, 1), ::testing::_)));
  }
}

TEST(BlockedWorkTest, WorkOnAPartIsTakenOutOnce) {
  BlockedWork blocked;
  blocked.Add({.part = 2, .attempt = 1});
  blocked.Add({.part = 0, .attempt = 1});
  EXPECT_THAT(blocked.parts(), ElementsAre(0, 2));
  EXPECT_EQ(blocked.size(), 2);

  EXPECT_THAT(blocked.TakeOut(1), IsEmpty());
  EXPECT_EQ(blocked.TakeOut(2).size(), 1U);

  EXPECT_THAT(blocked.TakeOut(2), IsEmpty());
  EXPECT_THAT(blocked.parts(), ElementsAre(0));
}

TEST(BlockedWorkTest, WorkOfANewerAttemptReplacesTheOlder) {
  BlockedWork blocked;
  blocked.Add({.part = 1, .attempt = 1});
  blocked.Add({.part = 1, .attempt = 2});

  const std::vector<PartWork> work = blocked.TakeOut(1);

  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].attempt, 2);
}

// Parts of which two make up the least that a thread is worth.
class LargeParts final : public FakePartUpdater {
 public:
  using FakePartUpdater::FakePartUpdater;
  size_t part_size(int) const override {
    return kElementsPerThread * sizeof(float) / 2;
  }
};

TEST(PartWorkTest, SharesAreAllOfTheWorkEachOnce) {
  const LargeParts updater(9);
  std::vector<PartWork> work(9);
  for (int part = 0; part < 9; ++part) work[part].part = part;
  Mutex mutex;
  std::multiset<int> seen;

  ForEachShare(updater, std::move(work), [&](std::vector<PartWork> share) {
    MutexLock lock(mutex);
    for (const PartWork& item : share) seen.insert(item.part);
  });

  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

}  // namespace
}  // namespace lockstep::server
