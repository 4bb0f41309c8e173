#include "worker/client/chunks/ready_chunks.h"

#include <deque>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Id = ReadyChunks::Id;
using Order = ReadyChunks::Order;

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

  ready.Reset(Order::kAsReady);

  EXPECT_THAT(ready.order(), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(ready.MarkReady(2), IsEmpty());
  EXPECT_THAT(ready.MarkReady(1), ElementsAre(Id{1, 0}));
}

// One server, seven chunks of one variable each.
std::vector<std::vector<Chunk>> SevenLayers() {
  std::vector<Chunk> chunks;
  for (int variable = 0; variable < 7; ++variable) {
    chunks.push_back(ChunkOf({variable}));
  }
  return {chunks};
}

TEST(ReadyChunksTest, ThirdsComeLastAndTheFirstLayersFirst) {
  ReadyChunks ready(SevenLayers());
  ready.Reset(Order::kThirdsLast);

  EXPECT_THAT(ready.MarkReady(6), ElementsAre(Id{0, 6}));
  EXPECT_THAT(ready.MarkReady(5), IsEmpty());
  EXPECT_THAT(ready.MarkReady(4), ElementsAre(Id{0, 4}));
  EXPECT_THAT(ready.MarkReady(3), ElementsAre(Id{0, 3}));
  EXPECT_THAT(ready.MarkReady(2), IsEmpty());
  EXPECT_THAT(ready.MarkReady(1), ElementsAre(Id{0, 1}));
  EXPECT_THAT(ready.MarkReady(0), ElementsAre(Id{0, 0}, Id{0, 2}, Id{0, 5}));
  EXPECT_THAT(ready.MarkRest(), IsEmpty());
  EXPECT_THAT(ready.order(), ElementsAre(ElementsAre(6, 4, 3, 1, 0, 2, 5)));

  ready.KeepNothingBack();

  EXPECT_THAT(ready.order(), ElementsAre(ElementsAre(6, 5, 4, 3, 2, 1, 0)));
}

TEST(ReadyChunksTest, WhatIsNotKeptBackAnyMoreComesOnce) {
  ReadyChunks ready(SevenLayers());
  ready.Reset(Order::kThirdsLast);
  for (size_t variable : {6, 5, 4}) ready.MarkReady(variable);

  ready.KeepNothingBack();

  EXPECT_THAT(ready.order(), ElementsAre(ElementsAre(6, 5, 4)));
  EXPECT_THAT(ready.MarkReady(2), ElementsAre(Id{0, 2}));
  EXPECT_THAT(ready.MarkRest(), ElementsAre(Id{0, 0}, Id{0, 1}, Id{0, 3}));
  ready.Reset(Order::kThirdsLast);
  EXPECT_THAT(ready.MarkReady(5), IsEmpty());
}

TEST(ReadyChunksTest, ThirdThatIsReadyAfterAllOthersIsSentAtOnce) {
  ReadyChunks ready(SevenLayers());
  ready.Reset(Order::kThirdsLast);
  for (size_t variable : {6, 4, 3, 1, 5}) ready.MarkReady(variable);

  EXPECT_THAT(ready.MarkReady(0), ElementsAre(Id{0, 0}, Id{0, 5}));
  EXPECT_THAT(ready.MarkReady(2), ElementsAre(Id{0, 2}));
}

TEST(ReadyChunksTest, ThirdsComeLastOfTheRestToo) {
  ReadyChunks ready(SevenLayers());
  ready.Reset(Order::kThirdsLast);
  for (int pass = 0; pass < 2; ++pass) {
    ready.MarkReady(5);
    ready.MarkReady(4);

    EXPECT_THAT(ready.MarkRest(), ElementsAre(Id{0, 0}, Id{0, 1}, Id{0, 3},
                                              Id{0, 6}, Id{0, 2}, Id{0, 5}));
    ready.Reset(Order::kThirdsLast);
  }
}

TEST(ReadyChunksTest, EachServersThirdsWaitForItsOwnChunks) {
  std::vector<std::vector<Chunk>> chunks = SevenLayers();
  chunks.push_back({ChunkOf({7}), ChunkOf({8}), ChunkOf({9})});
  ReadyChunks ready(chunks);
  ready.Reset(Order::kThirdsLast);
  for (size_t variable : {9, 8}) ready.MarkReady(variable);

  EXPECT_THAT(ready.MarkReady(7), ElementsAre(Id{1, 0}, Id{1, 2}));
  EXPECT_THAT(ready.MarkReady(5), IsEmpty());
}

TEST(ReadyChunksTest, VariablesAreFoundInTheirChunks) {
  const ReadyChunks ready(TwoServers());

  EXPECT_THAT(ready.ChunksOf(1), ElementsAre(Id{0, 1}, Id{1, 0}, Id{1, 0}));
  EXPECT_THAT(ready.ChunksOf(3), IsEmpty());
  EXPECT_THAT(ready.ChunksOf(1000000), IsEmpty());
}

TEST(ReadyChunksTest, ServersWithoutChunksGetNone) {
  ReadyChunks ready({{}, {}});

  EXPECT_THAT(ready.MarkReady(0), IsEmpty());
  EXPECT_THAT(ready.MarkRest(), IsEmpty());
  EXPECT_THAT(ready.order(), ElementsAre(IsEmpty(), IsEmpty()));
}

}  // namespace
}  // namespace lockstep::worker
