#include "worker/client/chunks/transfer_calls.h"

#include <algorithm>
#include <limits>

#include "common/base/passing_error.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLongestPause = absl::Milliseconds(300);

}  // namespace

void TransferCalls::Server::Add(size_t chunk) {
  if (chunk >= places.size()) places.resize(chunk + 1);
  places[chunk] = next_place++;
  waiting.push_back(chunk);
}

void TransferCalls::Server::PutBack(size_t chunk) {
  const auto is_before = [this](size_t one, size_t other) {
    return places[one] < places[other];
  };
  waiting.insert(
      std::lower_bound(waiting.begin(), waiting.end(), chunk, is_before),
      chunk);
}

TransferCalls::TransferCalls(const Options& options,
                             const std::vector<std::deque<size_t>>& chunks)
    : retry_pause_(options.retry_pause), servers_(chunks.size()) {
  for (size_t s = 0; s < chunks.size(); ++s) {
    left_ += chunks[s].size();
    for (const size_t chunk : chunks[s]) servers_[s].Add(chunk);
    servers_[s].pause = options.retry_pause;
    servers_[s].window = options.window;
    if (s < options.without_window.size() && options.without_window[s]) {
      servers_[s].window = std::numeric_limits<int>::max();
    }
  }
}

void TransferCalls::Add(int server, size_t chunk) {
  ++left_;
  servers_[server].Add(chunk);
}

std::optional<size_t> TransferCalls::Next(int server, absl::Time now) {
  Server& s = servers_[server];
  if (!failure_.ok() || s.waiting.empty() || IsFull(server) ||
      now < s.retry_at) {
    return std::nullopt;
  }
  const size_t chunk = s.waiting.front();
  s.waiting.pop_front();
  ++s.in_flight;
  ++in_flight_;
  return chunk;
}

bool TransferCalls::Done(int server, size_t chunk, const absl::Status& status,
                         absl::Time now) {
  Server& s = servers_[server];
  --s.in_flight;
  --in_flight_;
  if (status.ok()) {
    --left_;
    s.pause = retry_pause_;
    return failure_.ok() && !s.waiting.empty();
  }
  if (!IsPassing(status)) {
    if (failure_.ok()) failure_ = status;
    return false;
  }
  // Other workers may wait for this chunk, and all send in one order.
  s.PutBack(chunk);
  // A call that has waited until its deadline broke the stream of all: a server
  // that hears nothing for long takes this worker for lost.
  const bool at_once = failure_.ok() && absl::IsDeadlineExceeded(status) &&
                       s.pause == retry_pause_;
  s.retry_at = now;
  if (!at_once) s.retry_at += s.pause;
  s.pause = std::min(2 * s.pause, kLongestPause);
  return at_once;
}

}  // namespace lockstep::worker
