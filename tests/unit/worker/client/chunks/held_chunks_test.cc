#include "worker/client/chunks/held_chunks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Server 0 has "w" in two parts of 32 bytes, server 1 two rows of table "t".
Plan MakePlan() {
  Plan plan;
  plan.variables = {{"w", {16}, DType::kFloat32, {}},
                    {"t", {4, 2}, DType::kFloat32, {}, RowCut::kMod}};
  plan.parts = {{.variable = 0, .offset = 0, .count = 8, .server = 0},
                {.variable = 0, .offset = 8, .count = 8, .index = 1},
                {.variable = 1, .offset = 0, .count = 4, .server = 1}};
  return plan;
}

class HeldChunksTest : public ::testing::Test {
 protected:
  const Plan plan_ = MakePlan();
  ParameterMemory memory_ = *ParameterMemory::Make(
      plan_.variables, ParameterMemory::Gradients::kPrivate);
  HeldChunks chunks_{plan_, memory_, 2, 32};
};

TEST_F(HeldChunksTest, AllIsMissingAtFirstButRowsThatThePassDoesNotNeed) {
  EXPECT_THAT(chunks_.Missing(0), ElementsAre(ElementsAre(0, 1), IsEmpty()));

  ASSERT_TRUE(memory_.ChooseRows(1, {1}).ok());
  chunks_.RouteTables();

  EXPECT_THAT(chunks_.Missing(0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0)));
  EXPECT_EQ(chunks_.ValueBytes(1, 0), 8u);
  EXPECT_EQ(chunks_.ValueBytes(0, 1), 32u);
  EXPECT_EQ(chunks_.GradientBytes(0, 1), 32u);
}

TEST_F(HeldChunksTest, ChunkOfTheStepIsNotMissing) {
  chunks_.Hold(0, 1, {.step = 4});

  EXPECT_THAT(chunks_.Missing(4), ElementsAre(ElementsAre(0), IsEmpty()));
  EXPECT_THAT(chunks_.Missing(5), ElementsAre(ElementsAre(0, 1), IsEmpty()));
  EXPECT_THAT(chunks_.Missing(-1), ElementsAre(ElementsAre(0, 1), IsEmpty()));
  EXPECT_EQ(chunks_.Newest(2), 4);
  EXPECT_EQ(chunks_.Newest(7), 7);
}

TEST_F(HeldChunksTest, ValuesOfAPushCountOnceItsAttemptIsCommitted) {
  chunks_.Hold(0, 0, {.step = 4, .attempt = 2});
  chunks_.Hold(0, 1, {.step = 4, .attempt = 1});
  EXPECT_THAT(chunks_.Missing(4), ElementsAre(ElementsAre(0, 1), IsEmpty()));

  chunks_.Settle(4, 2);

  EXPECT_THAT(chunks_.Missing(4), ElementsAre(ElementsAre(1), IsEmpty()));
  EXPECT_EQ(chunks_.held(0, 1).step, -1);
}

TEST_F(HeldChunksTest, ValuesThatWereTakenAreMissingUntilTheyAreHeldAnew) {
  chunks_.Hold(0, 0, {.step = 4});
  chunks_.Hold(0, 1, {.step = 4});

  ASSERT_TRUE(memory_.TakeValue(0).ok());

  EXPECT_THAT(chunks_.Missing(4), ElementsAre(ElementsAre(0, 1), IsEmpty()));

  chunks_.Hold(0, 1, {.step = 5, .attempt = 1});
  chunks_.Settle(5, 1);
  EXPECT_THAT(chunks_.Missing(5), ElementsAre(ElementsAre(0), IsEmpty()));
}

TEST_F(HeldChunksTest, RowsOfAnEarlierPassAreNotHeld) {
  ASSERT_TRUE(memory_.ChooseRows(1, {1}).ok());
  chunks_.RouteTables();
  chunks_.Hold(1, 0, {.step = 4});

  chunks_.RouteTables();

  EXPECT_THAT(chunks_.Missing(4),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0)));
}

// In compatible mode another value may be of a later step than the rest of the
// pass.
TEST_F(HeldChunksTest, OfRowsInAPassOnlyTablesAndTakenValuesAreMissing) {
  using Among = HeldChunks::Among;
  ASSERT_TRUE(memory_.ChooseRows(1, {1}).ok());
  chunks_.RouteTables();
  chunks_.Hold(0, 0, {.step = 4});
  chunks_.Hold(0, 1, {.step = 4});

  for (const int64_t step : {5, -1}) {
    EXPECT_THAT(chunks_.Missing(step, Among::kAll),
                ElementsAre(ElementsAre(0, 1), ElementsAre(0)));
    EXPECT_THAT(chunks_.Missing(step, Among::kTables),
                ElementsAre(IsEmpty(), ElementsAre(0)));
    EXPECT_THAT(chunks_.Missing(step, Among::kTablesAndTaken),
                ElementsAre(IsEmpty(), ElementsAre(0)));
  }

  ASSERT_TRUE(memory_.TakeValue(0).ok());
  chunks_.Hold(0, 1, {.step = 4});

  EXPECT_THAT(chunks_.Missing(-1, Among::kTables),
              ElementsAre(IsEmpty(), ElementsAre(0)));
  EXPECT_THAT(chunks_.Missing(-1, Among::kTablesAndTaken),
              ElementsAre(ElementsAre(0), ElementsAre(0)));
}

// The table's part has rows 0 and 1.
TEST_F(HeldChunksTest, GradientOfATableMayBeASumWithOtherRows) {
  ASSERT_TRUE(memory_.ChooseRows(1, {1}).ok());
  chunks_.RouteTables();
  EXPECT_THAT(chunks_.gradient_rows(1, 0).rows, ElementsAre(1));

  memory_.SetRowSum(1, {.ids = {0, 1, 3},
                        .gradients = std::vector<std::byte>(24),
                        .counts = {1, 2, 1}});
  chunks_.RouteSum(0);
  chunks_.RouteSum(1);

  EXPECT_THAT(chunks_.gradient_rows(1, 0).rows, ElementsAre(0, 1));
  EXPECT_EQ(chunks_.GradientBytes(1, 0), 16u);
  EXPECT_THAT(chunks_.rows(1, 0).rows, ElementsAre(1));
  EXPECT_EQ(chunks_.ValueBytes(1, 0), 8u);

  ASSERT_TRUE(memory_.ChooseRows(1, {0}).ok());
  chunks_.RouteTables();
  EXPECT_THAT(chunks_.gradient_rows(1, 0).rows, ElementsAre(0));
}

TEST_F(HeldChunksTest, ServerIsCutAnewAloneAndHoldsNothingThen) {
  HeldChunks small(plan_, memory_, 2, 16);
  ASSERT_EQ(small.chunks()[0].size(), 2u);
  small.Hold(0, 0, {.step = 4});

  small.CutForMapped(0);

  EXPECT_THAT(small.Missing(4), ElementsAre(ElementsAre(0, 1), IsEmpty()));
}

// A server accepts 256 calls of a connection at a time. Chunks beyond them
// would wait for answers that another worker's order holds back.
TEST_F(HeldChunksTest, MappedServerWithALargeShareHasFewerChunksThanCalls) {
  constexpr int64_t kPartElements = int64_t{1} << 18;  // 1 MiB
  constexpr int kParts = 4096;
  Plan plan;
  plan.variables = {{"w", {kParts * kPartElements}, DType::kFloat32, {}}};
  for (int i = 0; i < kParts; ++i) {
    plan.parts.push_back({.variable = 0,
                          .offset = i * kPartElements,
                          .count = kPartElements,
                          .index = i});
  }
  // The memory is not read: it need not have the plan's size.
  HeldChunks large(plan, memory_, 1, size_t{1} << 20);
  ASSERT_EQ(large.chunks()[0].size(), size_t{kParts});

  large.CutForMapped(0);

  EXPECT_LT(large.chunks()[0].size(), 256u);
  int parts = 0;
  for (const Chunk& chunk : large.chunks()[0]) parts += chunk.num_parts;
  EXPECT_EQ(parts, kParts);
}

}  // namespace
}  // namespace lockstep::worker
