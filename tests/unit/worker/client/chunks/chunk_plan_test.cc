#include "worker/client/chunks/chunk_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

VariableSpec Floats(int64_t count) {
  return {"v", {count}, DType::kFloat32, {}};
}

TEST(ChunkPlanTest, SmallPartsTravelTogether) {
  const Plan plan{{Floats(4), Floats(4), Floats(4)},
                  {{0, 0, 4, 0, 0}, {1, 0, 4, 0, 1}, {2, 0, 4, 0, 2}}};

  const auto chunks = MakeChunks(plan, 1, 32);

  ASSERT_THAT(chunks[0], SizeIs(2));
  EXPECT_EQ(chunks[0][0].first_part, 0);
  EXPECT_EQ(chunks[0][0].num_parts, 2);
  EXPECT_EQ(chunks[0][0].size, 32u);
  EXPECT_EQ(chunks[0][1].first_part, 2);
  EXPECT_EQ(chunks[0][1].num_parts, 1);
}

TEST(ChunkPlanTest, PartsOfOneVariableKeepTheirPlaceInItsMemory) {
  const Plan plan{{Floats(10)},
                  {{0, 0, 4, 0, 0}, {0, 4, 4, 1, 0}, {0, 8, 2, 0, 1}}};

  const auto chunks = MakeChunks(plan, 2, 16);

  ASSERT_THAT(chunks[0], SizeIs(2));
  ASSERT_THAT(chunks[1], SizeIs(1));
  EXPECT_EQ(chunks[1][0].ranges[0].offset, 16u);
  EXPECT_EQ(chunks[0][1].ranges[0].offset, 32u);
  EXPECT_EQ(chunks[0][1].ranges[0].size, 8u);
}

// A mirror with parts 0 and 1 that also sums parts 4 and 5 of another one.
TEST(ChunkPlanTest, PartsOfTwoMirrorsTravelApart) {
  Plan plan{
      {Floats(4), Floats(4), Floats(4), Floats(4)},
      {{0, 0, 4, 0, 0}, {1, 0, 4, 0, 4}, {2, 0, 4, 0, 1}, {3, 0, 4, 0, 5}}};
  plan.mirrored = true;

  const auto chunks = MakeChunks(plan, 1, 1024);

  ASSERT_THAT(chunks[0], SizeIs(2));
  EXPECT_EQ(chunks[0][0].first_part, 0);
  EXPECT_EQ(chunks[0][0].num_parts, 2);
  EXPECT_EQ(chunks[0][0].ranges[1].variable, 2);
  EXPECT_EQ(chunks[0][1].first_part, 4);
  EXPECT_EQ(chunks[0][1].num_parts, 2);
  EXPECT_EQ(chunks[0][1].ranges[1].variable, 3);
}

TEST(ChunkPlanTest, ServerWithoutPartsHasNoChunk) {
  const Plan plan{{Floats(4)}, {{0, 0, 4, 1, 0}}};

  const auto chunks = MakeChunks(plan, 3, 1024);

  EXPECT_THAT(chunks[0], IsEmpty());
  EXPECT_THAT(chunks[1], SizeIs(1));
  EXPECT_THAT(chunks[2], IsEmpty());
}

TEST(ChunkPlanTest, PartLargerThanTheTargetTravelsAlone) {
  const Plan plan{{Floats(100), Floats(1)},
                  {{0, 0, 100, 0, 0}, {1, 0, 1, 0, 1}}};

  const auto chunks = MakeChunks(plan, 1, 16);

  ASSERT_THAT(chunks[0], SizeIs(2));
  EXPECT_EQ(chunks[0][0].size, 400u);
}

TEST(ChunkPlanTest, APartOfATableIsAChunkOfItsOwn) {
  const Plan plan{{{"a", {2}, DType::kFloat32, {}},
                   {"t", {4, 2}, DType::kFloat32, {}, RowCut::kDiv},
                   {"b", {2}, DType::kFloat32, {}}},
                  {{0, 0, 2, 0, 0}, {1, 0, 8, 0, 1}, {2, 0, 2, 0, 2}}};
  const auto chunks = MakeChunks(plan, 1, 1 << 20);
  ASSERT_EQ(chunks[0].size(), 3u);
  EXPECT_FALSE(chunks[0][0].table.has_value());
  EXPECT_EQ(chunks[0][1].table, plan.parts[1]);
  EXPECT_EQ(chunks[0][1].size, 0u);
  EXPECT_EQ(chunks[0][1].ranges.size(), 1u);
  EXPECT_EQ(chunks[0][2].first_part, 2);
}

}  // namespace
}  // namespace lockstep::worker
