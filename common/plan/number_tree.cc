#include "common/plan/number_tree.h"

#include <bit>

namespace lockstep {

int BlocksOf(int numbers, int per_block) {
  return (numbers - 1) / per_block + 1;
}

int BlockSizeOf(int numbers, int blocks) {
  for (int size = 1;; size *= 2) {
    const int with_size = BlocksOf(numbers, size);
    if (with_size == blocks) return size;
    if (with_size < blocks || with_size == 1) return 0;
  }
}

int MergesAfter(int index, int count) {
  const auto bits = static_cast<unsigned>(index);
  // Entries of the stack are complete subtrees, one for each bit of the number
  // of terms. The last term completes all of them.
  return index + 1 == count ? std::popcount(bits) : std::countr_one(bits);
}

std::vector<int> MergesOfPresent(const std::vector<bool>& present) {
  std::vector<int> merges;
  std::vector<bool> stack;
  const int count = static_cast<int>(present.size());
  for (int i = 0; i < count; ++i) {
    stack.push_back(present[i]);
    if (present[i]) merges.push_back(0);
    for (int left = MergesAfter(i, count); left > 0; --left) {
      const bool right = stack.back();
      stack.pop_back();
      if (right && stack.back()) ++merges.back();
      stack.back() = stack.back() || right;
    }
  }
  return merges;
}

}  // namespace lockstep
