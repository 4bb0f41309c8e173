#include "worker/ready_chunks.h"

namespace lockstep {

ReadyChunks::ReadyChunks(const std::vector<std::vector<Chunk>>& chunks)
    : parts_(chunks.size()), order_(chunks.size()) {
  for (size_t server = 0; server < chunks.size(); ++server) {
    for (size_t i = 0; i < chunks[server].size(); ++i) {
      parts_[server].push_back(chunks[server][i].ranges.size());
      for (const MemoryRange& range : chunks[server][i].ranges) {
        const auto variable = static_cast<size_t>(range.variable);
        if (variable >= by_variable_.size()) by_variable_.resize(variable + 1);
        by_variable_[variable].push_back({static_cast<int>(server), i});
      }
    }
  }
  Reset();
}

void ReadyChunks::Reset() {
  missing_ = parts_;
  for (auto& of_server : order_) of_server.clear();
  ready_.assign(by_variable_.size(), false);
}

std::vector<ReadyChunks::Id> ReadyChunks::MarkReady(size_t variable) {
  std::vector<Id> became;
  if (variable >= ready_.size() || ready_[variable]) return became;
  ready_[variable] = true;
  for (const Id& id : by_variable_[variable]) {
    if (--missing_[id.server][id.chunk] > 0) continue;
    order_[id.server].push_back(id.chunk);
    became.push_back(id);
  }
  return became;
}

std::vector<ReadyChunks::Id> ReadyChunks::MarkRest() {
  std::vector<Id> rest;
  for (size_t server = 0; server < missing_.size(); ++server) {
    for (size_t i = 0; i < missing_[server].size(); ++i) {
      if (missing_[server][i] == 0) continue;
      missing_[server][i] = 0;
      order_[server].push_back(i);
      rest.push_back({static_cast<int>(server), i});
    }
  }
  ready_.assign(ready_.size(), true);
  return rest;
}

}  // namespace lockstep
