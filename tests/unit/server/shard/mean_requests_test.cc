#include "server/shard/mean_requests.h"

#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MeanRequestsTest : public ShardFixture {
 protected:
  MeanRequestsTest() : shard_(Created()) {}

  std::shared_ptr<Shard> Created() {
    auto created = Shard::Create(options_);
    EXPECT_OK(created);
    return *std::move(created);
  }

  const Engine::MeansWanted wanted_ = {0, 1, {0, 1, 2}};
  std::shared_ptr<Shard> shard_;
  MeanRequests requests_;
};

TEST_F(MeanRequestsTest, EveryPartIsCalledForOnce) {
  EXPECT_THAT(requests_.Look(shard_, wanted_), ElementsAre(0, 1, 2));
  EXPECT_EQ(requests_.of().step, 0);
  EXPECT_EQ(requests_.of().attempt, 1);
  requests_.Called(0, 2);
  EXPECT_THAT(requests_.Look(shard_, wanted_), ElementsAre(2));
  requests_.Called(2, 1);
  EXPECT_THAT(requests_.Look(shard_, wanted_), IsEmpty());
}

TEST_F(MeanRequestsTest, PartsOfAFailedCallAreCalledForAgain) {
  requests_.Look(shard_, wanted_);
  requests_.Called(0, 3);
  EXPECT_TRUE(requests_.Failed({0, 1}, 1, 2));
  EXPECT_THAT(requests_.Look(shard_, wanted_), ElementsAre(1, 2));
}

TEST_F(MeanRequestsTest, CallOfAnEarlierAttemptDoesNotCount) {
  requests_.Look(shard_, wanted_);
  requests_.Called(0, 3);
  const Engine::MeansWanted again = {0, 2, {0, 1, 2}};
  EXPECT_THAT(requests_.Look(shard_, again), ElementsAre(0, 1, 2));
  requests_.Called(0, 3);
  EXPECT_FALSE(requests_.Failed({0, 1}, 0, 3));
  EXPECT_THAT(requests_.Look(shard_, again), IsEmpty());
}

TEST_F(MeanRequestsTest, ShardThatIsCreatedAnewHasNoCalls) {
  requests_.Look(shard_, wanted_);
  requests_.Called(0, 3);
  shard_.reset();
  options_.incarnation += 1;
  shard_ = Created();
  EXPECT_THAT(requests_.Look(shard_, wanted_), ElementsAre(0, 1, 2));
}

TEST_F(MeanRequestsTest, CallForAnAttemptThatIsOverIsNotRepeated) {
  EXPECT_FALSE(MeanRequests::MustRepeat(absl::OkStatus()));
  EXPECT_FALSE(MeanRequests::MustRepeat(absl::AbortedError("over")));
  EXPECT_TRUE(MeanRequests::MustRepeat(absl::UnavailableError("gone")));
  EXPECT_TRUE(MeanRequests::MustRepeat(absl::DeadlineExceededError("late")));
}

}  // namespace
}  // namespace lockstep::server
