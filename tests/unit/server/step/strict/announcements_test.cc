#include "server/step/strict/announcements.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

constexpr int64_t kStep = 7;

Pass AnnouncedPass(int worker, uint64_t incarnation = 1, int slot = 0) {
  return {worker, incarnation, kStep, 3, slot};
}

class AnnouncementsTest : public ::testing::Test {
 protected:
  void Add(const std::vector<int>& workers) {
    for (const int worker : workers) announcements_.Add(AnnouncedPass(worker));
  }
  std::vector<int> Workers() const {
    std::vector<int> workers;
    for (size_t i = 0; i < announcements_.size(); ++i) {
      workers.push_back(announcements_[i].worker);
    }
    return workers;
  }

  Announcements announcements_;
};

TEST_F(AnnouncementsTest, KeepsEachPassOnceInOrderOfArrival) {
  Add({2, 0, 1, 0});
  EXPECT_THAT(Workers(), ::testing::ElementsAre(2, 0, 1));

  // Other shares, steps and processes are other passes.
  announcements_.Add(AnnouncedPass(2, 1, 1));
  announcements_.Add(AnnouncedPass(2, 2));
  Pass next = AnnouncedPass(2);
  ++next.local_step;
  announcements_.Add(next);
  EXPECT_EQ(announcements_.size(), 6u);

  // The count of passes does not tell two of them apart.
  Pass repeated = AnnouncedPass(2);
  ++repeated.pass;
  EXPECT_TRUE(announcements_.Has(repeated));
}

TEST_F(AnnouncementsTest, TellsWhichPassesCameFirst) {
  Add({2, 0, 1});
  EXPECT_TRUE(announcements_.HasAmong(1, AnnouncedPass(2)));
  EXPECT_FALSE(announcements_.HasAmong(1, AnnouncedPass(0)));
  EXPECT_TRUE(announcements_.HasAmong(3, AnnouncedPass(1)));
  EXPECT_FALSE(announcements_.HasAmong(3, AnnouncedPass(3)));
  EXPECT_FALSE(announcements_.HasAmong(3, AnnouncedPass(1, 2)));
  EXPECT_EQ(announcements_.PlaceOf(0, 3), 1u);
  EXPECT_EQ(announcements_.PlaceOf(0, 1), 1u);  // none below 1
  EXPECT_EQ(announcements_.PlaceOf(5, 9), 9u);
}

TEST_F(AnnouncementsTest, KnowsPassesOfEarlierProcessesOfAWorker) {
  announcements_.Add(AnnouncedPass(1, 5, 2));
  EXPECT_TRUE(announcements_.HasBefore(1, 6));
  EXPECT_FALSE(announcements_.HasBefore(1, 5));
  EXPECT_FALSE(announcements_.HasBefore(0, 6));
  EXPECT_FALSE(announcements_.HasBefore(2, 6));
}

TEST_F(AnnouncementsTest, RemovesProcessesOfAWorkerUpToOne) {
  announcements_.Add(AnnouncedPass(1, 5));
  announcements_.Add(AnnouncedPass(0, 1));
  announcements_.Add(AnnouncedPass(1, 7));

  announcements_.Remove(1, 6);

  EXPECT_THAT(Workers(), ::testing::ElementsAre(0, 1));
  EXPECT_FALSE(announcements_.Has(AnnouncedPass(1, 5)));
  EXPECT_FALSE(announcements_.HasBefore(1, 7));
  EXPECT_TRUE(announcements_.Has(AnnouncedPass(1, 7)));
}

TEST_F(AnnouncementsTest, RemovesWorkersThatTakeNoPart) {
  Add({4, 3, 2, 1});
  WorkerRoll roll(5);
  roll.SetWorkers({1, 3});
  announcements_.RemoveLeavers(roll);
  EXPECT_THAT(Workers(), ::testing::ElementsAre(3, 1));
  EXPECT_FALSE(announcements_.Has(AnnouncedPass(4)));
}

TEST_F(AnnouncementsTest, ReplacedPassBecomesTheLast) {
  Add({0, 1, 2, 3, 4});
  announcements_.Replace(1, 3);
  EXPECT_THAT(Workers(), ::testing::ElementsAre(0, 3, 2, 4, 1));
  EXPECT_TRUE(announcements_.HasAmong(2, AnnouncedPass(3)));
  EXPECT_FALSE(announcements_.HasAmong(4, AnnouncedPass(1)));
}

TEST_F(AnnouncementsTest, NothingIsLeftOfAStepThatIsCleared) {
  Add({0});
  announcements_.clear();
  EXPECT_EQ(announcements_.size(), 0u);
  EXPECT_FALSE(announcements_.Has(AnnouncedPass(0)));
  Add({0});
  EXPECT_EQ(announcements_.size(), 1u);
}

}  // namespace
}  // namespace lockstep::server
