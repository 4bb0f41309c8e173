#include "chief/checkpoint/tensor_blocks.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

// Rows 0, 2, 4 and 1, 3 of a table of five rows of two.
Plan InTurn() {
  return {{{"t", {5, 2}, DType::kFloat32, {}, RowCut::kMod}},
          {{0, 0, 6, 0, 0, 2}, {0, 2, 4, 1, 0, 2}}};
}

// The whole variable, every block put together from its pieces. An element of
// a piece is named by server and place.
std::vector<int64_t> PutTogether(const Plan& plan, int64_t target) {
  std::vector<int64_t> whole(NumElements(plan.variables[0].shape), -1);
  for (const TensorBlock& block : CutIntoBlocks(plan, 0, target)) {
    for (size_t i = 0; i < block.pieces.size(); ++i) {
      const TensorBlock::Piece& piece = block.pieces[i];
      ForEachStretch(block, i, 1, [&](size_t to, size_t from, size_t size) {
        EXPECT_LE(static_cast<int64_t>(to + size), block.count);
        EXPECT_LE(static_cast<int64_t>(from + size), piece.count);
        for (size_t e = 0; e < size; ++e) {
          whole[block.offset + to + e] =
              100 * piece.server + piece.first + static_cast<int64_t>(from + e);
        }
      });
    }
  }
  return whole;
}

TEST(TensorBlocksTest, PartsThatFollowOneAnotherAreCutToSize) {
  const Plan plan{{{"w", {7}, DType::kFloat32, {}}},
                  {{0, 0, 4, 0, 0}, {0, 4, 3, 1, 0}}};
  const auto blocks = CutIntoBlocks(plan, 0, 3);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1].offset, 3);
  EXPECT_EQ(blocks[1].count, 1);
  EXPECT_EQ(blocks[2].pieces[0].server, 1);
  EXPECT_THAT(PutTogether(plan, 3),
              ::testing::ElementsAre(0, 1, 2, 3, 100, 101, 102));
}

TEST(TensorBlocksTest, RowsInTurnAreInTheOrderOfTheTable) {
  for (const int64_t target : {1, 4, 5, 8, 100}) {
    EXPECT_THAT(PutTogether(InTurn(), target),
                ::testing::ElementsAre(0, 1, 100, 101, 2, 3, 102, 103, 4, 5))
        << target;
  }
}

}  // namespace
}  // namespace lockstep::chief
