#ifndef LOCKSTEP_DEPLOY_CLI_INSPECT_SHOWN_PROGRESS_H_
#define LOCKSTEP_DEPLOY_CLI_INSPECT_SHOWN_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "deploy/cli/text/live_line.h"
#include "deploy/cli/text/terminal.h"
#include "worker/data/files/file_reading.h"
#include "worker/scoring/checkpoint_scorer.h"
#include "worker/scoring/scoring_progress.h"

namespace lockstep::cli {

// ShownProgress shows, while it exists, the activity of a command that computes
// with a checkpoint on the terminal: the file that is read, or the share of the
// examples that are done.
//
// Threads: not thread-safe.
// Borrows: the terminal.
class ShownProgress {
 public:
  explicit ShownProgress(Terminal& terminal)
      : line_(terminal, Clock::Real()), progress_(Clock::Real(), [this] {
          line_.Draw([this] { return progress_.Get().activity; });
        }) {}

  // `activity` is as in ScoringProgress::Begin(). Until the next activity
  // begins, the names of the files that are read are shown in its place.
  void BeginReading(const std::string& activity) {
    Begin(activity);
    reads_.emplace(progress_.reading());
  }
  void Begin(const std::string& activity) {
    reads_.reset();
    line_.Renew();
    progress_.Begin(activity);
  }

  // Returns a function that a scorer must call after each batch.
  worker::OnScored on_scored() {
    return
        [this](int64_t done, int64_t total) { progress_.Advance(done, total); };
  }

 private:
  LiveLine line_;
  worker::ScoringProgress progress_;
  std::optional<worker::FileReading::Scope> reads_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_INSPECT_SHOWN_PROGRESS_H_
