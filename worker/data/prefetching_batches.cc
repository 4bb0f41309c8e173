#include "worker/data/prefetching_batches.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

// Far enough below 2^63 that no index fetched ahead overflows.
constexpr int64_t kMaxIndex = int64_t{1} << 62;

}  // namespace

PrefetchingBatches::PrefetchingBatches(BatchSource source, int depth,
                                       SpanRecorder* spans)
    : source_(std::move(source)),
      depth_(static_cast<size_t>(std::max(depth, 1))),
      spans_(spans),
      thread_([this] { Run(); }) {}

PrefetchingBatches::~PrefetchingBatches() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  // Joins after stopping_: Run() may still be inside `source_`.
  thread_.join();
}

absl::StatusOr<Batch> PrefetchingBatches::Get(int64_t index) {
  if (index < 0 || index > kMaxIndex) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch index is ", index, "; it must be in [0, 2^62]"));
  }
  return Take(index);
}

absl::StatusOr<Batch> PrefetchingBatches::Take(int64_t index) {
  MutexLock lock(mutex_);
  // Another order than expected, for example after a redone step: what was
  // fetched is of no use.
  if (index != next_get_) StartFrom(index);
  if (ready_.empty()) {
    const SpanTimer wait(spans_, {.kind = SpanKind::kReadData});
    while (ready_.empty()) changed_.Wait(mutex_);
  }
  absl::StatusOr<Batch> batch = std::move(ready_.front());
  ready_.pop_front();
  // After an error the next Get() starts again, also for the same index: the
  // error may pass.
  next_get_ = batch.ok() ? index + 1 : -1;
  changed_.SignalAll();
  return batch;
}

void PrefetchingBatches::StartFrom(int64_t index) {
  ready_.clear();
  ++restarts_;
  next_get_ = index;
  next_fetch_ = index;
  fetching_ = true;
  changed_.SignalAll();
}

bool PrefetchingBatches::MayFetch() const {
  return fetching_ && ready_.size() < depth_;
}

void PrefetchingBatches::Run() {
  mutex_.Lock();
  for (;;) {
    while (!stopping_ && !MayFetch()) changed_.Wait(mutex_);
    if (stopping_) break;
    const uint64_t restarts = restarts_;
    const int64_t index = next_fetch_;

    mutex_.Unlock();
    // Without the lock: Get() must be able to take ready batches meanwhile.
    absl::StatusOr<Batch> batch = source_(index);
    mutex_.Lock();

    // Get() has started from another index meanwhile.
    if (restarts != restarts_) continue;
    // After an error nothing is fetched until Get() has taken it.
    fetching_ = batch.ok();
    next_fetch_ = index + 1;
    ready_.push_back(std::move(batch));
    changed_.SignalAll();
  }
  mutex_.Unlock();
}

}  // namespace lockstep::worker
