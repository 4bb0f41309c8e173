#include "worker/ready_chunks.h"

#include <deque>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Id = ReadyChunks::Id;

Chunk ChunkOf(const std::vector<int>& variables) {
  Chunk chunk;
  for (int variable : variables) chunk.ranges.push_back({variable, 0, 4});
  return chunk;
}

// Server 0: variable 0 in two chunks, the second with the whole of variable 1.
// Server 1: variables 2 and 1 in one chunk, 4 alone. Nothing holds variable 3.
std::vector<std::vector<Chunk>> TwoServers() {
  return {{ChunkOf({0, 0}), ChunkOf({0, 1})},
          {ChunkOf({2, 1, 1}), ChunkOf({4})}};
}

TEST(ReadyChunksTest, ChunkIsReadyWithTheLastOfItsVariables) {
  ReadyChunks ready(TwoServers());

  EXPECT_THAT(ready.MarkReady(1), IsEmpty());
  EXPECT_THAT(ready.MarkReady(2), ElementsAre(Id{1, 0}));
  EXPECT_THAT(ready.MarkReady(0), ElementsAre(Id{0, 0}, Id{0, 1}));
  EXPECT_THAT(ready.MarkReady(4), ElementsAre(Id{1, 1}));
}

TEST(ReadyChunksTest, OrderIsThatOfBecomingReady) {
  ReadyChunks ready(TwoServers());

  for (size_t variable : {4, 2, 1, 0}) ready.MarkReady(variable);

  EXPECT_THAT(ready.order(), ElementsAre(ElementsAre(0, 1), ElementsAre(1, 0)));
}

TEST(ReadyChunksTest, VariableThatIsReportedTwiceCountsOnce) {
  ReadyChunks ready(TwoServers());

  EXPECT_THAT(ready.MarkReady(1), IsEmpty());
  EXPECT_THAT(ready.MarkReady(1), IsEmpty());
  EXPECT_THAT(ready.MarkReady(1), IsEmpty());

  EXPECT_THAT(ready.MarkReady(2), ElementsAre(Id{1, 0}));
  EXPECT_THAT(ready.MarkReady(2), IsEmpty());
}

TEST(ReadyChunksTest, VariablesThatNoChunkHoldsMakeNothingReady) {
  ReadyChunks ready(TwoServers());

  EXPECT_THAT(ready.MarkReady(3), IsEmpty());
  EXPECT_THAT(ready.MarkReady(5), IsEmpty());
  EXPECT_THAT(ready.MarkReady(1000000), IsEmpty());
}

TEST(ReadyChunksTest, RestComesBehindWhatIsReady) {
  ReadyChunks ready(TwoServers());
  ready.MarkReady(4);
  ready.MarkReady(1);

  EXPECT_THAT(ready.MarkRest(), ElementsAre(Id{0, 0}, Id{0, 1}, Id{1, 0}));

  EXPECT_THAT(ready.order(), ElementsAre(ElementsAre(0, 1), ElementsAre(1, 0)));
  EXPECT_THAT(ready.MarkRest(), IsEmpty());
  EXPECT_THAT(ready.MarkReady(0), IsEmpty());
}

TEST(ReadyChunksTest, NextPassBeginsWithNothingReady) {
  ReadyChunks ready(TwoServers());
  ready.MarkReady(4);
  ready.MarkRest();

  ready.Reset();

  EXPECT_THAT(ready.order(), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(ready.MarkReady(2), IsEmpty());
  EXPECT_THAT(ready.MarkReady(1), ElementsAre(Id{1, 0}));
}

TEST(ReadyChunksTest, ServersWithoutChunksAreFine) {
  ReadyChunks ready({{}, {}});

  EXPECT_THAT(ready.MarkReady(0), IsEmpty());
  EXPECT_THAT(ready.MarkRest(), IsEmpty());
  EXPECT_THAT(ready.order(), ElementsAre(IsEmpty(), IsEmpty()));
}

}  // namespace
}  // namespace lockstep
