#include "server/shard/shard_pulse.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/text/duration_text.h"

namespace lockstep::server {

ShardPulse::ShardPulse(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      looked_(clock.Now()),
      touched_(clock.Now()),
      touches_([this] { Touch(); }),
      looks_([this] {
        while (Rest()) Look();
      }) {}

ShardPulse::~ShardPulse() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
    wake_.SignalAll();
  }
  looks_.join();
  touches_.join();
}

bool ShardPulse::Rest() {
  MutexLock lock(mutex_);
  if (!quit_) wake_.WaitFor(mutex_, absl::ToChronoMilliseconds(options_.every));
  return !quit_;
}

void ShardPulse::Touch() {
  do {
    options_.touch();
    MutexLock lock(mutex_);
    touched_ = clock_.Now();
  } while (Rest());
}

void ShardPulse::Look() {
  MutexLock look_lock(look_mutex_);
  const absl::Time now = clock_.Now();
  const absl::Duration pause = now - std::exchange(looked_, now);
  absl::Duration silent;
  {
    MutexLock lock(mutex_);
    // This process was stopped, or its clock was set: the silence proves
    // nothing.
    if (pause > options_.longest / 2) touched_ = std::max(touched_, now);
    silent = now - touched_;
  }
  const bool lives = silent <= options_.longest;
  // One log line per change, not one per check.
  if (lives == lives_) return;
  lives_ = lives;
  if (lives) {
    spdlog::warn("the shard can be used again");
  } else {
    spdlog::error("the shard has not been free for {}: health is NOT_SERVING",
                  DurationText(silent));
  }
  options_.tell(lives);
}

}  // namespace lockstep::server
