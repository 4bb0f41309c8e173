#include "chief/checkpoint/key_merge.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KeyMergeTest, BlocksAscendAndNameAStretchOfEachPart) {
  KeyMerge merge({{2, 5, 9}, {}, {1, 6}});

  const KeyMerge::Block first = merge.Next(3);
  EXPECT_THAT(first.keys, ElementsAre(1, 2, 5));
  EXPECT_THAT(first.part, ElementsAre(2, 0, 0));
  EXPECT_THAT(first.first, ElementsAre(0, 0, 0));
  EXPECT_THAT(first.count, ElementsAre(2, 0, 1));

  const KeyMerge::Block second = merge.Next(3);
  EXPECT_THAT(second.keys, ElementsAre(6, 9));
  EXPECT_THAT(second.part, ElementsAre(2, 0));
  EXPECT_THAT(second.first, ElementsAre(2, 0, 1));
  EXPECT_THAT(second.count, ElementsAre(1, 0, 1));

  EXPECT_THAT(merge.Next(3).keys, IsEmpty());
}

TEST(KeyMergeTest, NoPartsHaveNoKeys) {
  EXPECT_THAT(KeyMerge({}).Next(1).keys, IsEmpty());
  EXPECT_THAT(KeyMerge({{}, {}}).Next(1).keys, IsEmpty());
}

TEST(KeyMergeTest, IsAsSortingAllKeysWhateverTheBlocks) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<int64_t>> parts(1 + random() % 5);
    std::vector<int64_t> all;
    for (int64_t key = 0; key < 100; ++key) {
      if (random() % 2 == 0) continue;
      all.push_back(key);
      parts[random() % parts.size()].push_back(key);
    }
    KeyMerge merge(parts);
    std::vector<int64_t> merged;
    while (true) {
      const KeyMerge::Block block = merge.Next(1 + random() % 9);
      if (block.keys.empty()) break;
      std::vector<int64_t> next = block.first;
      for (size_t i = 0; i < block.keys.size(); ++i) {
        EXPECT_EQ(parts[block.part[i]][next[block.part[i]]++], block.keys[i]);
      }
      merged.insert(merged.end(), block.keys.begin(), block.keys.end());
    }
    EXPECT_EQ(merged, all);
  }
}

}  // namespace
}  // namespace lockstep::chief
