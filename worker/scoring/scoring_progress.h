#ifndef LOCKSTEP_WORKER_SCORING_SCORING_PROGRESS_H_
#define LOCKSTEP_WORKER_SCORING_SCORING_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/plan/progress.h"
#include "worker/data/files/file_reading.h"

namespace lockstep::worker {

// ScoringProgress describes the activity of a process that scores checkpoints
// and its progress, for people: the evaluator reports it to the chief.
//
// Threads: safe to share: the evaluator writes, the heartbeats read.
// Borrows: the clock.
class ScoringProgress {
 public:
  // Calls `on_change`, in the thread that makes it, after each change of the
  // activity.
  explicit ScoringProgress(const Clock& clock,
                           std::function<void()> on_change = nullptr);

  // Begins `activity`, a text for people such as "scores step 300".
  void Begin(const std::string& activity) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reports that `done` of the activity's `total` examples have been scored.
  void Advance(int64_t done, int64_t total) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the reason why the newest checkpoint has no score; empty: it has one.
  void SetTrouble(const std::string& trouble) ABSL_LOCKS_EXCLUDED(mutex_);

  // Describes the files that are read during an activity, in place of its text.
  FileReading& reading() { return reading_; }

  // Returns the activity with its share done and the time left, its age, and
  // the trouble.
  Progress Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Clock& clock_;
  const std::function<void()> on_change_;
  FileReading reading_;
  mutable Mutex mutex_;
  std::string activity_ ABSL_GUARDED_BY(mutex_);
  std::string trouble_ ABSL_GUARDED_BY(mutex_);
  absl::Time began_ ABSL_GUARDED_BY(mutex_);
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t total_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not known
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SCORING_SCORING_PROGRESS_H_
