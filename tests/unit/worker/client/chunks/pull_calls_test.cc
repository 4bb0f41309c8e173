#include "worker/client/chunks/pull_calls.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

MATCHER_P2(Pulls, first, count, "pulls the chunks") {
  return arg.first == static_cast<size_t>(first) &&
         arg.count == static_cast<size_t>(count);
}

// Chunks of two parts with ten bytes each, with the given first parts.
std::vector<Chunk> Chunks(const std::vector<int>& first_parts) {
  std::vector<Chunk> chunks;
  for (const int first : first_parts) {
    const auto offset = static_cast<size_t>(10 * first);
    chunks.push_back({first, 2, 20, {{0, offset, 10}, {0, offset + 10, 10}}});
  }
  return chunks;
}

TEST(PullCallsTest, ConsecutiveChunksTravelTogetherAsOne) {
  const auto calls = MakePullCalls(Chunks({4, 6, 8}), {0, 1, 2}, 1000);

  ASSERT_THAT(calls, ElementsAre(Pulls(0, 3)));
  const Chunk& chunk = calls[0].chunk;
  EXPECT_EQ(chunk.first_part, 4);
  EXPECT_EQ(chunk.num_parts, 6);
  EXPECT_EQ(chunk.size, 60u);
  ASSERT_THAT(chunk.ranges, SizeIs(6));
  EXPECT_EQ(chunk.ranges[5].offset, 90u);
}

TEST(PullCallsTest, CallsHaveAtMostTheGivenBytes) {
  EXPECT_THAT(MakePullCalls(Chunks({0, 2, 4}), {0, 1, 2}, 40),
              ElementsAre(Pulls(0, 2), Pulls(2, 1)));
}

TEST(PullCallsTest, ChunkLargerThanTheGivenBytesTravelsAlone) {
  EXPECT_THAT(MakePullCalls(Chunks({0, 2}), {0, 1}, 0),
              ElementsAre(Pulls(0, 1), Pulls(1, 1)));
}

// A chunk between them is held already.
TEST(PullCallsTest, ChunkThatIsNotMissingEndsACall) {
  EXPECT_THAT(MakePullCalls(Chunks({0, 2, 4}), {0, 2}, 1000),
              ElementsAre(Pulls(0, 1), Pulls(2, 1)));
}

// A message names a range of parts.
TEST(PullCallsTest, PartsThatAreNotConsecutiveEndACall) {
  EXPECT_THAT(MakePullCalls(Chunks({0, 8, 10}), {0, 1, 2}, 1000),
              ElementsAre(Pulls(0, 1), Pulls(1, 2)));
}

// The rows of each part of a table are named apart.
TEST(PullCallsTest, PartOfATableTravelsAlone) {
  std::vector<Chunk> chunks = Chunks({0, 2, 4});
  chunks[1].table = Part{};

  EXPECT_THAT(MakePullCalls(chunks, {0, 1, 2}, 1000),
              ElementsAre(Pulls(0, 1), Pulls(1, 1), Pulls(2, 1)));
}

}  // namespace
}  // namespace lockstep::worker
