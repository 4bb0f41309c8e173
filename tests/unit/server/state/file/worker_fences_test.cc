#include "server/state/file/worker_fences.h"

#include <vector>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

class WorkerFencesTest : public ::testing::Test {
 protected:
  absl::Span<std::byte> Memory() {
    return {reinterpret_cast<std::byte*>(words_.data()),
            words_.size() * sizeof(int64_t)};
  }
  // The memory of three workers' fences.
  std::vector<int64_t> words_ = std::vector<int64_t>(7);
  WorkerFences fences_;
};

TEST_F(WorkerFencesTest, NoWorkerIsFencedOffAtFirst) {
  fences_.KeepIn(Memory());

  EXPECT_FALSE(fences_.IsExpired(1, 1));
  EXPECT_FALSE(fences_.IsShutOut(1, 1));
  EXPECT_TRUE(fences_.Standings().empty());
}

TEST_F(WorkerFencesTest, NewestIncarnationThatIsExpiredCounts) {
  fences_.Expire(1, 7);
  fences_.Expire(1, 6);

  EXPECT_TRUE(fences_.IsExpired(1, 7));
  EXPECT_FALSE(fences_.IsExpired(1, 8));
  EXPECT_FALSE(fences_.IsExpired(0, 1));
}

TEST_F(WorkerFencesTest, WorkerIsShutOutUntilAnIncarnationIsNamed) {
  fences_.ShutOut(1, 0);
  fences_.Expire(1, 0);
  EXPECT_TRUE(fences_.IsShutOut(1, 9));

  fences_.Expire(1, 7);

  EXPECT_FALSE(fences_.IsShutOut(1, 9));
}

TEST_F(WorkerFencesTest, ShutOutAboveAnIncarnationEndsAboveItOnly) {
  fences_.ShutOut(1, 7);
  EXPECT_FALSE(fences_.IsShutOut(1, 7));
  EXPECT_TRUE(fences_.IsShutOut(1, 8));

  fences_.Expire(1, 7);  // it has died, and lets in no other
  EXPECT_TRUE(fences_.IsShutOut(1, 8));
  fences_.Expire(1, 8);

  EXPECT_FALSE(fences_.IsShutOut(1, 9));
}

TEST_F(WorkerFencesTest, LaterProcessFindsWhatWasKept) {
  fences_.Expire(0, 7);  // before there was memory
  fences_.KeepIn(Memory());
  fences_.Expire(1, 1'763'000'000'000'000);
  fences_.ShutOut(1, 1'763'000'000'000'001);
  fences_.EndInput(1);
  fences_.ShutOut(2, 0);
  fences_.Expire(2, 3);

  WorkerFences later;
  later.Expire(0, 5);
  later.KeepIn(Memory());

  EXPECT_TRUE(later.IsExpired(0, 7));
  EXPECT_FALSE(later.IsExpired(0, 8));
  EXPECT_TRUE(later.IsExpired(1, 1'763'000'000'000'000));
  const std::vector<WorkerStanding> standings = {
      {1, 1'763'000'000'000'001, /*input_ended=*/true}};
  EXPECT_EQ(later.Standings(), standings);
  EXPECT_TRUE(later.IsExpired(2, 3));
  EXPECT_FALSE(later.IsShutOut(2, 9));
}

TEST_F(WorkerFencesTest, EndedInputIsForgottenAloneAndInTheMemoryToo) {
  fences_.KeepIn(Memory());
  fences_.Expire(1, 7);
  fences_.ShutOut(1, 9);
  fences_.EndInput(1);
  fences_.EndInput(2);

  fences_.ForgetEndedInput();

  WorkerFences later;
  later.KeepIn(Memory());
  const std::vector<WorkerStanding> standings = {{1, 9}};
  EXPECT_EQ(fences_.Standings(), standings);
  EXPECT_EQ(later.Standings(), standings);
  EXPECT_TRUE(later.IsExpired(1, 7));
}

TEST_F(WorkerFencesTest, NothingIsWrittenOnceTheMemoryIsGivenUp) {
  fences_.KeepIn(Memory());
  fences_.Expire(0, 7);
  fences_.KeepIn({});

  fences_.Expire(0, 9);

  EXPECT_EQ(words_[1], 7);
  EXPECT_TRUE(fences_.IsExpired(0, 9));
}

TEST_F(WorkerFencesTest, NonsenseInTheMemoryIsNotFollowed) {
  EXPECT_EQ(WorkerFences::NumPlaces(Memory().size()), 3);
  EXPECT_EQ(WorkerFences::NumPlaces(0), 0);
  for (const int64_t used : {int64_t{-1}, int64_t{1} << 62}) {
    words_.assign(7, 0);
    words_[0] = used;
    words_[5] = 9;

    WorkerFences later;
    later.KeepIn(Memory());

    EXPECT_TRUE(later.IsExpired(2, 9));
    EXPECT_FALSE(later.IsExpired(3, 1));
  }
}

TEST_F(WorkerFencesTest, PlacesOfWorkersWithoutAFenceAreNotTouched) {
  fences_.KeepIn(Memory());
  fences_.Expire(1, 7);

  EXPECT_EQ(words_, (std::vector<int64_t>{2, 0, 0, 7, 0, 0, 0}));
}

TEST_F(WorkerFencesTest, WorkersBeyondTheMemoryAreFencedOffByThisProcess) {
  fences_.KeepIn(Memory());

  fences_.Expire(3, 7);
  fences_.Expire(1'000'000, 8);

  EXPECT_TRUE(fences_.IsExpired(3, 7));
  EXPECT_TRUE(fences_.IsExpired(1'000'000, 8));
  EXPECT_EQ(words_, std::vector<int64_t>(7));
}

}  // namespace
}  // namespace lockstep::server
