#include "chief/checkpoint/key_merge.h"

namespace lockstep::chief {

KeyMerge::KeyMerge(std::vector<std::vector<int64_t>> keys)
    : keys_(std::move(keys)), next_(keys_.size()) {
  for (size_t part = 0; part < keys_.size(); ++part) {
    if (!keys_[part].empty()) heads_.emplace(keys_[part][0], part);
  }
}

KeyMerge::Block KeyMerge::Next(size_t most) {
  Block block{{}, {}, next_, std::vector<int64_t>(keys_.size())};
  while (block.keys.size() < most && !heads_.empty()) {
    const auto [key, part] = heads_.top();
    heads_.pop();
    block.keys.push_back(key);
    block.part.push_back(part);
    ++block.count[part];
    const auto next = static_cast<size_t>(++next_[part]);
    // A part has one key in the queue at a time, its smallest.
    if (next < keys_[part].size()) heads_.emplace(keys_[part][next], part);
  }
  return block;
}

}  // namespace lockstep::chief
