#include "common/plan/variable_spec.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(VariableSpecTest, ElementsAreTheProductOfTheDimensions) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({7}), 7);
  EXPECT_EQ(NumElements({3, 4, 5}), 60);
  EXPECT_EQ(NumElements({int64_t{1} << 40, 8}), int64_t{1} << 43);
}

TEST(VariableSpecTest, ShapesArePrintedAsLists) {
  EXPECT_EQ(ShapeString({}), "[]");
  EXPECT_EQ(ShapeString({7}), "[7]");
  EXPECT_EQ(ShapeString({3, -2}), "[3,-2]");
}

TEST(VariableSpecTest, TextTellsVariablesApart) {
  VariableSpec spec{"w", {2, 3}, DType::kFloat32};
  spec.initializer = {Initializer::Kind::kNormal, 0, 0.5};
  EXPECT_EQ(VariableString(spec), "\"w\" float32 [2,3], normal(0, 0.5)");
  spec.initializer = {.kind = Initializer::Kind::kGiven};
  spec.buffer = true;
  EXPECT_EQ(VariableString(spec),
            "\"w\" float32 [2,3], first values of a worker, a buffer");
  spec.buffer = false;
  spec.initializer = {};
  spec.row_cut = RowCut::kKey;
  EXPECT_EQ(VariableString(spec),
            "\"w\" float32 [2,3], all 0, a growing table");
}

TEST(VariableSpecTest, SpecsAreEqualWhenEveryFieldIs) {
  const VariableSpec spec{
      "w", {2, 3}, DType::kFloat32, {Initializer::Kind::kNormal, 0, 1}};
  EXPECT_EQ(spec, VariableSpec(spec));

  VariableSpec other = spec;
  other.name = "v";
  EXPECT_NE(spec, other);
  other = spec;
  other.shape = {3, 2};
  EXPECT_NE(spec, other);
  other = spec;
  other.dtype = DType::kFloat64;
  EXPECT_NE(spec, other);
  other = spec;
  other.initializer.b = 2;
  EXPECT_NE(spec, other);
  other = spec;
  other.initializer.a = 2;
  EXPECT_NE(spec, other);
  other = spec;
  other.initializer.kind = Initializer::Kind::kUniform;
  EXPECT_NE(spec, other);
  other = spec;
  other.row_cut = RowCut::kDiv;
  EXPECT_NE(spec, other);
  other = spec;
  other.buffer = true;
  EXPECT_NE(spec, other);
}

Part Slice(int64_t offset, int64_t count, int64_t row_stride) {
  return {.offset = offset, .count = count, .row_stride = row_stride};
}

TEST(VariableSpecTest, PartsOfATableAreWholeRowsOfIt) {
  VariableSpec table{"t", {5, 2}, DType::kFloat32, {}, RowCut::kMod};
  EXPECT_EQ(RowWidth(table.shape), 2);
  EXPECT_TRUE(IsPartOf(table, Slice(0, 10, 1)));
  EXPECT_TRUE(IsPartOf(table, Slice(0, 6, 2)));
  EXPECT_TRUE(IsPartOf(table, Slice(2, 4, 2)));
  EXPECT_FALSE(IsPartOf(table, Slice(2, 6, 2)));  // beyond the end
  EXPECT_FALSE(IsPartOf(table, Slice(1, 2, 1)));  // begins inside of a row
  EXPECT_FALSE(IsPartOf(table, Slice(0, 3, 1)));
  EXPECT_FALSE(IsPartOf(table, Slice(0, 2, 0)));
  EXPECT_FALSE(IsPartOf(table, Slice(10, 2, 1)));
  EXPECT_TRUE(IsPartOf(table, Slice(8, 2, int64_t{1} << 62)));

  table.row_cut = RowCut::kDiv;
  EXPECT_FALSE(IsPartOf(table, Slice(0, 6, 2)));
  table.row_cut = RowCut::kNone;
  EXPECT_TRUE(IsPartOf(table, Slice(1, 3, 1)));
  EXPECT_FALSE(IsPartOf(table, Slice(8, 3, 1)));
}

TEST(VariableSpecTest, PartsOfAGrowingTableAreAsLongAsThoseOfRowsInTurn) {
  const VariableSpec table{"t", {5, 2}, DType::kFloat32, {}, RowCut::kKey};
  EXPECT_TRUE(table.grows());
  EXPECT_TRUE(table.is_table());
  EXPECT_TRUE(IsPartOf(table, Slice(0, 6, 2)));
  EXPECT_TRUE(IsPartOf(table, Slice(2, 4, 2)));
  EXPECT_FALSE(IsPartOf(table, Slice(2, 6, 2)));
}

TEST(VariableSpecTest, KeysAreSpreadEvenlyWhateverTheyHaveInCommon) {
  for (const int64_t factor : {int64_t{1}, int64_t{6}, int64_t{1} << 40}) {
    for (const int64_t parts : {1, 2, 3, 8}) {
      std::vector<int> count(parts);
      for (int64_t i = 0; i < 8000; ++i) ++count[PartOfKey(i * factor, parts)];
      for (const int keys : count) {
        EXPECT_NEAR(keys, 8000.0 / parts, 250) << factor << " in " << parts;
      }
    }
  }
}

// State files and checkpoints survive a build.
TEST(VariableSpecTest, PartsOfKeysNeverChange) {
  EXPECT_EQ(PartOfKey(0, 1000), 0);
  EXPECT_EQ(PartOfKey(1, 1000), 6238072747940578789u % 1000);
}

}  // namespace
}  // namespace lockstep
