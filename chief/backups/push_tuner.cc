#include "chief/backups/push_tuner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/plan/number_tree.h"

namespace lockstep::chief {

void PushTuner::Hear(int worker, uint64_t incarnation, const Totals& totals) {
  auto& [known, before] = heard_[worker];
  // A new incarnation counts from 0.
  if (known != incarnation) before = {};
  known = incarnation;
  since_.micro_batches += totals.micro_batches - before.micro_batches;
  since_.computing += totals.computing - before.computing;
  since_.pushes += totals.pushes - before.pushes;
  since_.pushing += totals.pushing - before.pushing;
  before = totals;
}

int PushTuner::Largest(int workers) const {
  int block = 1;
  while (2 * block <= std::min(numbers_, kLargestBlock) &&
         BlocksOf(numbers_, 2 * block) >= kBlocksPerWorker * workers) {
    block *= 2;
  }
  return block;
}

int PushTuner::Smallest(double pushing, double computing, int largest) {
  int block = 1;
  while (block < largest && pushing > kShare * block * computing) block *= 2;
  return block;
}

std::string PushTuner::Why(int block) const {
  return absl::StrFormat(
      "a push takes %.3g ms, a micro-batch %.3g ms; pushes are expected to "
      "take "
      "%.0f %% of the time of computing",
      1e3 * pushing_, 1e3 * computing_,
      100 * pushing_ / (block * std::max(computing_, 1e-9)));
}

std::optional<PushTuner::Change> PushTuner::AtBoundary(int64_t step, int block,
                                                       int workers) {
  const int largest = Largest(workers);
  // At once: the balance of the workers is worth more than bytes.
  if (block > largest) {
    wished_ = 0;
    return Change{largest,
                  absl::StrCat("each of ", workers, " workers gets ",
                               kBlocksPerWorker, " pushes of a step or more")};
  }
  // The job has gone back.
  if (step < decided_) {
    decided_ = step;
    wished_ = 0;
    since_ = {};
  }
  if (step < decided_ + kEverySteps || since_.pushes < kEveryPushes ||
      since_.micro_batches == 0) {
    return std::nullopt;
  }
  decided_ = step;
  pushing_ = absl::ToDoubleSeconds(since_.pushing) /
             static_cast<double>(since_.pushes);
  computing_ = absl::ToDoubleSeconds(since_.computing) /
               static_cast<double>(since_.micro_batches);
  since_ = {};
  // The bounds of what is right for about these times.
  const int fewest = Smallest(pushing_ / kMargin, computing_, largest);
  const int most = Smallest(pushing_ * kMargin, computing_, largest);
  if (block >= fewest && block <= most) {
    wished_ = 0;
    return std::nullopt;
  }
  const int best = Smallest(pushing_, computing_, largest);
  // The first of two decisions in a row only counts.
  if (std::exchange(wished_, best) == 0) return std::nullopt;
  wished_ = 0;
  return Change{best, Why(best)};
}

}  // namespace lockstep::chief
