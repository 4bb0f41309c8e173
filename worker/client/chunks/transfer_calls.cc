#include "worker/client/chunks/transfer_calls.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/passing_error.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLongestPause = absl::Milliseconds(300);

}  // namespace

TransferCalls::TransferCalls(const Options& options,
                             std::vector<std::deque<size_t>> chunks)
    : retry_pause_(options.retry_pause), servers_(chunks.size()) {
  for (size_t s = 0; s < chunks.size(); ++s) {
    left_ += chunks[s].size();
    servers_[s].waiting = std::move(chunks[s]);
    servers_[s].pause = options.retry_pause;
    servers_[s].window = options.window;
    if (s < options.without_window.size() && options.without_window[s]) {
      servers_[s].window = std::numeric_limits<int>::max();
    }
  }
}

void TransferCalls::Add(int server, size_t chunk) {
  ++left_;
  servers_[server].waiting.push_back(chunk);
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
  // At the front: other workers may wait for this chunk, and all send in one
  // order.
  s.waiting.push_front(chunk);
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
