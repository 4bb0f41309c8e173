#include "worker/client/chunks/chunk_transfer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLongestPause = absl::Milliseconds(300);

bool Passing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

ChunkTransfer::ChunkTransfer(Options options,
                             std::vector<std::deque<size_t>> chunks,
                             Start start)
    : options_(std::move(options)), start_(std::move(start)) {
  MutexLock lock(mutex_);
  servers_.resize(chunks.size());
  for (size_t s = 0; s < chunks.size(); ++s) {
    left_ += chunks[s].size();
    servers_[s].waiting = std::move(chunks[s]);
    servers_[s].pause = options_.retry_pause;
    servers_[s].window = options_.window;
    if (s < options_.without_window.size() && options_.without_window[s]) {
      servers_[s].window = std::numeric_limits<int>::max();
    }
  }
}

void ChunkTransfer::Add(int server, size_t chunk) {
  {
    MutexLock lock(mutex_);
    ++left_;
    servers_[server].waiting.push_back(chunk);
  }
  Pump(server);
}

bool ChunkTransfer::AddOnly(int server, size_t chunk) {
  MutexLock lock(mutex_);
  Server& s = servers_[server];
  ++left_;
  s.waiting.push_back(chunk);
  const bool full = s.in_flight >= s.window;  // the next that ends starts it
  return !full && !std::exchange(start_asked_, true);
}

void ChunkTransfer::StartAdded() {
  {
    MutexLock lock(mutex_);
    start_asked_ = false;
    ++total_in_flight_;  // keeps Run() as a call does
  }
  PumpAll();
  MutexLock lock(mutex_);
  --total_in_flight_;
}

bool ChunkTransfer::AllStarted(int server) const {
  MutexLock lock(mutex_);
  return servers_[server].waiting.empty();
}

bool ChunkTransfer::Finished() {
  MutexLock lock(mutex_);
  return total_in_flight_ == 0 && !start_asked_ &&
         (left_ == 0 || !failure_.ok());
}

void ChunkTransfer::Pump(int server) {
  while (true) {
    size_t chunk = 0;
    {
      MutexLock lock(mutex_);
      Server& s = servers_[server];
      if (!failure_.ok() || s.waiting.empty() || s.in_flight >= s.window ||
          options_.clock->Now() < s.retry_at) {
        return;
      }
      chunk = s.waiting.front();
      s.waiting.pop_front();
      ++s.in_flight;
      ++total_in_flight_;
    }
    // Outside the lock: `start_` may report from within, which calls Done().
    start_(server, chunk, [this, server, chunk](const absl::Status& status) {
      Done(server, chunk, status);
    });
  }
}

void ChunkTransfer::Done(int server, size_t chunk, const absl::Status& status) {
  bool more = false;
  {
    MutexLock lock(mutex_);
    Server& s = servers_[server];
    --s.in_flight;
    if (status.ok()) {
      --left_;
      s.pause = options_.retry_pause;
      more = failure_.ok() && !s.waiting.empty();
    } else if (Passing(status)) {
      // At the front: other workers may wait for this chunk, and all send in
      // one order.
      s.waiting.push_front(chunk);
      // A call that has waited until its deadline broke the stream of all: a
      // server that hears nothing for long takes this worker for lost.
      more = failure_.ok() && absl::IsDeadlineExceeded(status) &&
             s.pause == options_.retry_pause;
      s.retry_at = options_.clock->Now();
      if (!more) s.retry_at += s.pause;
      s.pause = std::min(2 * s.pause, kLongestPause);
      if (options_.on_retry) options_.on_retry(server, status);
    } else if (failure_.ok()) {
      failure_ = status;
    }
    // The call stays counted until the next one is under way, so that Run()
    // cannot return while this thread still uses the transfer.
    if (!more) {
      --total_in_flight_;
      return;
    }
  }
  Pump(server);
  MutexLock lock(mutex_);
  --total_in_flight_;
}

void ChunkTransfer::PumpAll() {
  size_t num_servers = 0;
  {
    MutexLock lock(mutex_);
    num_servers = servers_.size();
  }
  for (size_t s = 0; s < num_servers; ++s) Pump(static_cast<int>(s));
}

void ChunkTransfer::RunUntil(absl::FunctionRef<bool()> enough) {
  const auto over = [&] { return Finished() || enough(); };
  do {
    // For calls whose retry pause is over; no event announces that.
    PumpAll();
    options_.wait(over, options_.retry_pause);
  } while (!over());
}

absl::Status ChunkTransfer::Run() {
  RunUntil([] { return false; });
  MutexLock lock(mutex_);
  return failure_;
}

}  // namespace lockstep::worker
