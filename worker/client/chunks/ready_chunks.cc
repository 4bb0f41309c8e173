#include "worker/client/chunks/ready_chunks.h"

#include <utility>

namespace lockstep::worker {

ReadyChunks::ReadyChunks(const std::vector<std::vector<Chunk>>& chunks)
    : parts_(chunks.size()), order_(chunks.size()), as_ready_(chunks.size()) {
  for (size_t server = 0; server < chunks.size(); ++server) {
    for (size_t i = 0; i < chunks[server].size(); ++i) {
      parts_[server].push_back(chunks[server][i].ranges.size());
      // A chunk is ready when all its ranges are; a variable may be in several
      // chunks.
      for (const ByteRange& range : chunks[server][i].ranges) {
        const auto variable = static_cast<size_t>(range.variable);
        if (variable >= by_variable_.size()) by_variable_.resize(variable + 1);
        by_variable_[variable].push_back({static_cast<int>(server), i});
      }
    }
  }
  Reset(Order::kAsReady);
}

void ReadyChunks::Reset(Order order) {
  policy_ = order;
  missing_ = parts_;
  for (auto& of_server : order_) of_server.clear();
  for (auto& of_server : as_ready_) of_server.clear();
  ready_.assign(by_variable_.size(), false);
  kept_.assign(parts_.size(), {});
  first_left_.assign(parts_.size(), 0);
  for (size_t server = 0; server < parts_.size(); ++server) {
    for (size_t i = 0; i < parts_[server].size(); ++i) {
      if (!ComesLast(i) && parts_[server][i] > 0) ++first_left_[server];
    }
  }
}

void ReadyChunks::Send(const Id& id, std::vector<Id>& sent) {
  order_[id.server].push_back(id.chunk);
  sent.push_back(id);
}

void ReadyChunks::Release(const Id& id, std::vector<Id>& sent) {
  as_ready_[id.server].push_back(id.chunk);
  if (policy_ == Order::kAsReady) return Send(id, sent);
  size_t& first_left = first_left_[id.server];
  if (ComesLast(id.chunk) && first_left > 0) {
    // A set sorts by chunk: the first layer's chunks leave first at the end.
    kept_[id.server].insert(id.chunk);
    return;
  }
  Send(id, sent);
  // The last chunk that the others wait for has left: the kept ones may follow.
  if (ComesLast(id.chunk) || --first_left > 0) return;
  for (const size_t chunk : std::exchange(kept_[id.server], {})) {
    Send({id.server, chunk}, sent);
  }
}

void ReadyChunks::KeepNothingBack() {
  policy_ = Order::kAsReady;
  order_ = as_ready_;
  kept_.assign(parts_.size(), {});
}

std::vector<ReadyChunks::Id> ReadyChunks::MarkReady(size_t variable) {
  std::vector<Id> sent;
  // A variable that is reported twice must count once.
  if (variable >= ready_.size() || ready_[variable]) return sent;
  ready_[variable] = true;
  for (const Id& id : by_variable_[variable]) {
    if (--missing_[id.server][id.chunk] == 0) Release(id, sent);
  }
  return sent;
}

std::vector<ReadyChunks::Id> ReadyChunks::MarkRest() {
  std::vector<Id> sent;
  for (size_t server = 0; server < missing_.size(); ++server) {
    for (size_t i = 0; i < missing_[server].size(); ++i) {
      // Released already.
      if (missing_[server][i] == 0) continue;
      missing_[server][i] = 0;
      Release({static_cast<int>(server), i}, sent);
    }
  }
  ready_.assign(ready_.size(), true);
  return sent;
}

const std::vector<ReadyChunks::Id>& ReadyChunks::ChunksOf(
    size_t variable) const {
  static const auto* const kNone = new std::vector<Id>();
  return variable < by_variable_.size() ? by_variable_[variable] : *kNone;
}

}  // namespace lockstep::worker
