#ifndef LOCKSTEP_CHIEF_CHECKPOINT_KEY_MERGE_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_KEY_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace lockstep::chief {

// KeyMerge merges the keys of a growing table's parts into one ascending order,
// block by block, so that a checkpoint has the same bytes for any number of
// servers.
//
// The rows of a block that lie in one part are consecutive in that part, so one
// call reads them.
// Threads: not thread-safe.
class KeyMerge {
 public:
  // `keys`: by part, ascending.
  explicit KeyMerge(std::vector<std::vector<int64_t>> keys);

  struct Block {
    std::vector<int64_t> keys;   // ascending
    std::vector<size_t> part;    // of each key
    std::vector<int64_t> first;  // by part: the first of its rows
    std::vector<int64_t> count;  // by part: how many
  };
  // Returns the next `most` > 0 keys; fewer at the end, and none after that.
  Block Next(size_t most);

 private:
  using Head = std::pair<int64_t, size_t>;  // the next key of a part

  const std::vector<std::vector<int64_t>> keys_;
  std::vector<int64_t> next_;  // by part
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_KEY_MERGE_H_
