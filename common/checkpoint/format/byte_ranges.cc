#include "common/checkpoint/format/byte_ranges.h"

#include <algorithm>
#include <iterator>

namespace lockstep {

void ByteRanges::Add(uint64_t begin, uint64_t end) {
  // An empty range would break the rule that ranges neither touch nor overlap.
  if (begin >= end) return;
  auto next = end_by_begin_.upper_bound(begin);
  if (next != end_by_begin_.begin()) {
    auto before = std::prev(next);
    // Ranges that touch are joined too, so FirstMissing() needs only the first
    // one.
    if (before->second >= begin) {
      begin = before->first;
      next = before;
    }
  }
  while (next != end_by_begin_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = end_by_begin_.erase(next);
  }
  end_by_begin_.emplace_hint(next, begin, end);
}

uint64_t ByteRanges::FirstMissing() const {
  const auto first = end_by_begin_.find(0);
  return first == end_by_begin_.end() ? 0 : first->second;
}

}  // namespace lockstep
