#ifndef LOCKSTEP_CHIEF_BACKUPS_PUSH_TUNER_H_
#define LOCKSTEP_CHIEF_BACKUPS_PUSH_TUNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace lockstep::chief {

// PushTuner chooses how many micro-batches of a shared step a worker adds up
// before it pushes them, while a job runs: the smallest power of two with which
// pushes take at most kShare of the time of computing. But each worker must
// have at least kBlocksPerWorker blocks of a step: the balance of unequal
// workers is worth more than saved bytes.
//
// Only the time for which workers do nothing but push counts. The number
// changes if it is wrong for all times of a push from 1 / kMargin to kMargin
// times the measured one, in two decisions in a row, so that noise changes
// nothing.
//
// Threads: not thread-safe. Decides only by its arguments.
class PushTuner {
 public:
  static constexpr double kShare = 0.1;
  static constexpr double kMargin = 1.5;
  static constexpr int kBlocksPerWorker = 2;
  // A worker keeps a gradient for each doubling.
  static constexpr int kLargestBlock = 64;
  // Steps and pushes between two decisions, at least.
  static constexpr int64_t kEverySteps = 8;
  static constexpr int64_t kEveryPushes = 16;

  // A worker's totals since its incarnation began.
  struct Totals {
    int64_t micro_batches = 0;
    absl::Duration computing;
    int64_t pushes = 0;
    absl::Duration pushing;
  };

  struct Change {
    int block = 1;         // micro-batches of a push
    std::string why = {};  // one line
  };

  // A step has `numbers` micro-batches.
  explicit PushTuner(int numbers) : numbers_(numbers) {}

  // Records the newest totals of a worker.
  void Hear(int worker, uint64_t incarnation, const Totals& totals);

  // Must be called at the step boundary after `step`, in which `workers`
  // workers pushed blocks of `block` micro-batches. Returns the size for the
  // next step if another one is better.
  std::optional<Change> AtBoundary(int64_t step, int block, int workers);

 private:
  // The largest block that leaves each worker enough of them.
  int Largest(int workers) const;
  // The smallest block, up to `largest`, for a push of `pushing` seconds and a
  // micro-batch of `computing` seconds.
  static int Smallest(double pushing, double computing, int largest);
  std::string Why(int block) const;

  const int numbers_;
  // By worker: the incarnation with its newest totals.
  std::map<int, std::pair<uint64_t, Totals>> heard_;
  Totals since_;          // of all workers, since the last decision
  int64_t decided_ = 0;   // the step of the last decision
  double pushing_ = 0;    // seconds of a push at the last decision
  double computing_ = 0;  // seconds of a micro-batch
  int wished_ = 0;        // the block that the last decision found, if another
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_PUSH_TUNER_H_
