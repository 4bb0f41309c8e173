#include "deploy/cli/spans/intervals.h"

#include <algorithm>
#include <iterator>

namespace lockstep::cli {

void Intervals::Add(int64_t begin, int64_t end) {
  if (begin >= end) return;
  auto next = ends_.upper_bound(begin);
  // The interval before reaches into the new one, or touches it.
  if (next != ends_.begin() && std::prev(next)->second >= begin) {
    next = std::prev(next);
    begin = next->first;
  }
  while (next != ends_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_[begin] = end;
}

int64_t Intervals::Overlap(int64_t begin, int64_t end) const {
  int64_t sum = 0;
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin()) next = std::prev(next);
  for (; next != ends_.end() && next->first < end; ++next) {
    sum += std::max<int64_t>(
        std::min(end, next->second) - std::max(begin, next->first), 0);
  }
  return sum;
}

}  // namespace lockstep::cli
