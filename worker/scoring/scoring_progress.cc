#include "worker/scoring/scoring_progress.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/progress_text.h"

namespace lockstep::worker {

ScoringProgress::ScoringProgress(const Clock& clock,
                                 std::function<void()> on_change)
    : clock_(clock),
      on_change_(on_change != nullptr ? std::move(on_change) : [] {}),
      reading_(clock, on_change_),
      began_(clock.Now()) {}

void ScoringProgress::Begin(const std::string& activity) {
  const absl::Time now = clock_.Now();
  {
    MutexLock lock(mutex_);
    activity_ = activity;
    began_ = now;
    done_ = 0;
    total_ = 0;
  }
  // Outside the lock: the callback may call Get().
  on_change_();
}

void ScoringProgress::Advance(int64_t done, int64_t total) {
  {
    MutexLock lock(mutex_);
    done_ = done;
    total_ = total;
  }
  on_change_();
}

void ScoringProgress::SetTrouble(const std::string& trouble) {
  MutexLock lock(mutex_);
  trouble_ = trouble;
}

Progress ScoringProgress::Get() const {
  // Before the lock: `reading_` has one of its own.
  std::string reading = reading_.Text();
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  Progress progress;
  progress.activity_age = now - began_;
  progress.activity =
      reading.empty()
          ? absl::StrCat(
                activity_,
                ProgressText(done_, total_,
                             absl::ToDoubleSeconds(progress.activity_age)))
          : std::move(reading);
  progress.trouble = trouble_;
  return progress;
}

}  // namespace lockstep::worker
