#include "worker/client/chunks/chunk_transfer.h"

#include <optional>
#include <utility>

#include "common/base/passing_error.h"

namespace lockstep::worker {

ChunkTransfer::ChunkTransfer(Options options,
                             const std::vector<std::deque<size_t>>& chunks,
                             Start start)
    : options_(std::move(options)),
      start_(std::move(start)),
      calls_(options_, chunks) {}

void ChunkTransfer::Add(int server, size_t chunk) {
  {
    MutexLock lock(mutex_);
    calls_.Add(server, chunk);
  }
  Pump(server);
}

bool ChunkTransfer::AddOnly(int server, size_t chunk) {
  MutexLock lock(mutex_);
  calls_.Add(server, chunk);
  // If the window is full, the next call that ends starts the one added.
  return !calls_.IsFull(server) && !std::exchange(start_asked_, true);
}

void ChunkTransfer::StartAdded() {
  {
    MutexLock lock(mutex_);
    start_asked_ = false;
    ++users_;  // keeps Run() as a call does
  }
  PumpAll();
  MutexLock lock(mutex_);
  --users_;
}

bool ChunkTransfer::AllStarted(int server) const {
  MutexLock lock(mutex_);
  return calls_.AllStarted(server);
}

bool ChunkTransfer::Finished() {
  MutexLock lock(mutex_);
  return users_ == 0 && !start_asked_ && calls_.IsOver();
}

void ChunkTransfer::Pump(int server) {
  while (true) {
    std::optional<size_t> chunk;
    {
      MutexLock lock(mutex_);
      chunk = calls_.Next(server, options_.clock->Now());
      if (!chunk.has_value()) return;
      ++users_;
    }
    // Outside the lock: `start_` may report from within, which calls Done().
    start_(server, *chunk,
           [this, server, chunk = *chunk](const absl::Status& status) {
             Done(server, chunk, status);
           });
  }
}

void ChunkTransfer::Done(int server, size_t chunk, const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    const bool more = calls_.Done(server, chunk, status, options_.clock->Now());
    if (IsPassing(status) && options_.on_retry) {
      options_.on_retry(server, status);
    }
    // The call stays counted until the next one is under way, so that Run()
    // cannot return while this thread still uses the transfer.
    if (!more) {
      --users_;
      return;
    }
  }
  Pump(server);
  MutexLock lock(mutex_);
  --users_;
}

void ChunkTransfer::PumpAll() {
  int num_servers = 0;
  {
    MutexLock lock(mutex_);
    num_servers = calls_.num_servers();
  }
  for (int server = 0; server < num_servers; ++server) Pump(server);
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
  return calls_.failure();
}

}  // namespace lockstep::worker
