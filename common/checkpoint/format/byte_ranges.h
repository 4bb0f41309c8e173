#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BYTE_RANGES_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BYTE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace lockstep {

// ByteRanges is a set of bytes, kept as the fewest half-open ranges.
class ByteRanges {
 public:
  // Ranges may come in any order, touch, overlap and repeat.
  void Add(uint64_t begin, uint64_t end);

  // The lowest byte that is not in the set.
  uint64_t FirstMissing() const;

  // What the set costs in memory.
  size_t num_ranges() const { return end_by_begin_.size(); }

 private:
  std::map<uint64_t, uint64_t> end_by_begin_;  // apart, none of them empty
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BYTE_RANGES_H_
