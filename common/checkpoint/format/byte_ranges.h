#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BYTE_RANGES_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BYTE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace lockstep {

// ByteRanges is a set of bytes, stored as the fewest half-open ranges.
//
// Threads: not thread-safe.
class ByteRanges {
 public:
  // Ranges may come in any order, touch, overlap and repeat.
  void Add(uint64_t begin, uint64_t end);

  // Returns the lowest byte that is not in the set.
  uint64_t FirstMissing() const;

  // Number of stored ranges, which determines the memory of the set.
  size_t num_ranges() const { return end_by_begin_.size(); }

 private:
  // Disjoint, not adjacent, not empty.
  std::map<uint64_t, uint64_t> end_by_begin_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BYTE_RANGES_H_
