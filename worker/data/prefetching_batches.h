#ifndef LOCKSTEP_WORKER_DATA_PREFETCHING_BATCHES_H_
#define LOCKSTEP_WORKER_DATA_PREFETCHING_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/trace/span_recorder.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// PrefetchingBatches makes the next batches in a thread of its own while the
// caller computes.
//
// Threads: Get() from one thread at a time; the source is called from the
//          prefetching thread alone.
// Owns:    its thread. The destructor waits for at most one batch to be made.
// Borrows: the recorder of the waits for batches; null: none are recorded.
class PrefetchingBatches {
 public:
  // At most `depth` batches wait at a time; values below 1 count as 1.
  explicit PrefetchingBatches(BatchSource source, int depth = 2,
                              SpanRecorder* spans = nullptr);
  ~PrefetchingBatches();
  PrefetchingBatches(const PrefetchingBatches&) = delete;
  PrefetchingBatches& operator=(const PrefetchingBatches&) = delete;

  // Returns batch `index`. The successor of the last index is ready or being
  // made; any other index discards the batches that wait and starts again from
  // there.
  //
  //   kInvalidArgument  `index` is negative or above 2^62
  //   otherwise         the source's answer for this very index
  absl::StatusOr<Batch> Get(int64_t index) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<Batch> Take(int64_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void StartFrom(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayFetch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BatchSource source_;
  const size_t depth_;
  SpanRecorder* const spans_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // False before the first Get() and after an error: nothing is fetched.
  bool fetching_ ABSL_GUARDED_BY(mutex_) = false;
  // Counts the restarts: a batch begun before the last restart is discarded
  // when it is done.
  uint64_t restarts_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_get_ ABSL_GUARDED_BY(mutex_) = -1;  // -1: any index restarts
  int64_t next_fetch_ ABSL_GUARDED_BY(mutex_) = 0;
  // The answers for next_get_, next_get_ + 1, ...
  std::deque<absl::StatusOr<Batch>> ready_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses everything above
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_PREFETCHING_BATCHES_H_
