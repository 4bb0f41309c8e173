#include "common/plan/number_tree.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// The sum of terms [first, first + count), written out: split at the largest
// power of two below the length. Empty: all are absent.
std::string Reference(const std::vector<std::string>& terms, int first,
                      int count) {
  if (count == 1) return terms[first];
  int half = 1;
  while (2 * half < count) half *= 2;
  const std::string left = Reference(terms, first, half);
  const std::string right = Reference(terms, first + half, count - half);
  if (left.empty() || right.empty()) return left + right;
  return absl::StrCat("(", left, "+", right, ")");
}

std::string Reference(const std::vector<std::string>& terms) {
  return Reference(terms, 0, static_cast<int>(terms.size()));
}

void Merge(std::vector<std::string>& stack, int merges) {
  for (; merges > 0; --merges) {
    const std::string right = stack.back();
    stack.pop_back();
    stack.back() = absl::StrCat("(", stack.back(), "+", right, ")");
  }
}

std::string Sum(const std::vector<std::string>& terms) {
  std::vector<std::string> stack;
  for (size_t i = 0; i < terms.size(); ++i) {
    stack.push_back(terms[i]);
    Merge(stack,
          MergesAfter(static_cast<int>(i), static_cast<int>(terms.size())));
  }
  EXPECT_EQ(stack.size(), 1);
  return stack[0];
}

std::vector<std::string> Numbers(int count) {
  std::vector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(absl::StrCat(i));
  return numbers;
}

TEST(NumberTreeTest, SumIsThatOfTheTree) {
  EXPECT_EQ(Sum(Numbers(7)), "(((0+1)+(2+3))+((4+5)+6))");
  for (int count = 1; count <= 17; ++count) {
    EXPECT_EQ(Sum(Numbers(count)), Reference(Numbers(count)));
  }
}

TEST(NumberTreeTest, BlocksOfAnySizeGiveTheSameSum) {
  for (int count = 1; count <= 17; ++count) {
    for (int size = 1; size <= count; size *= 2) {
      const std::vector<std::string> numbers = Numbers(count);
      std::vector<std::string> blocks;
      for (int first = 0; first < count; first += size) {
        const auto begin = numbers.begin() + first;
        blocks.push_back(Sum({begin, begin + std::min(size, count - first)}));
      }
      EXPECT_EQ(static_cast<int>(blocks.size()), BlocksOf(count, size));
      EXPECT_EQ(Sum(blocks), Reference(numbers)) << count << " by " << size;
    }
  }
}

TEST(NumberTreeTest, SizeFollowsFromTheNumberOfBlocks) {
  for (int count = 1; count <= 17; ++count) {
    for (int size = 1; size <= count; size *= 2) {
      EXPECT_EQ(BlockSizeOf(count, BlocksOf(count, size)), size);
    }
  }
  EXPECT_EQ(BlockSizeOf(8, 3), 0);
  EXPECT_EQ(BlockSizeOf(8, 9), 0);
  EXPECT_EQ(BlockSizeOf(8, 0), 0);
}

TEST(NumberTreeTest, AbsentTermsAreLeftOut) {
  EXPECT_THAT(MergesOfPresent({true, false, true, true}), ElementsAre(0, 0, 2));
  for (int count = 1; count <= 9; ++count) {
    for (int mask = 0; mask < 1 << count; ++mask) {
      std::vector<std::string> terms = Numbers(count);
      std::vector<bool> present;
      for (int i = 0; i < count; ++i) {
        present.push_back((mask >> i & 1) != 0);
        if (!present.back()) terms[i] = "";
      }
      const std::vector<int> merges = MergesOfPresent(present);
      std::vector<std::string> stack;
      auto merge = merges.begin();
      for (const std::string& term : terms) {
        if (term.empty()) continue;
        stack.push_back(term);
        Merge(stack, *merge++);
      }
      EXPECT_EQ(merge, merges.end());
      EXPECT_EQ(stack.empty() ? "" : stack[0], Reference(terms)) << mask;
      EXPECT_LE(stack.size(), 1);
    }
  }
}

}  // namespace
}  // namespace lockstep
