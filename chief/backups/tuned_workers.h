#ifndef LOCKSTEP_CHIEF_BACKUPS_TUNED_WORKERS_H_
#define LOCKSTEP_CHIEF_BACKUPS_TUNED_WORKERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/backups/pass_distribution.h"
#include "chief/backups/pass_times.h"
#include "common/plan/progress.h"

namespace lockstep::chief {

// A worker's report, and its state in the chief's view.
struct WorkerNews {
  int worker = 0;
  uint64_t incarnation = 0;
  bool alive = true;   // a member whose lease runs
  int64_t passes = 0;  // ended ones of this incarnation
  // The newest of them, oldest first.
  absl::Span<const PassTime> newest = {};
  // The time of the current pass so far; zero: there is none.
  absl::Duration at_hand;
  // Not alive, because all workers must register again. The worker's process
  // is taken for alive, so neither this absence nor its next incarnation is a
  // loss.
  bool sent_back = false;
};

// TunedWorkers keeps the workers of a job: the distribution of each one's pass
// times, and whether it takes part at present. The distribution stays when
// another process takes the worker's place: the machine is likely the same.
//
// Threads: not thread-safe.
class TunedWorkers {
 public:
  // The weight of a pass halves after this many later ones.
  static constexpr double kHalfLife = 100;
  // A worker is known after this many passes.
  static constexpr int64_t kFewPasses = 12;

  // `patience`: see IsAway().
  explicit TunedWorkers(absl::Duration patience) : patience_(patience) {}

  // Returns true if the worker has ended passes since the last news of it.
  bool Hear(const WorkerNews& news);

  // Sets the workers that take part, ascending; forgets all others.
  void Keep(const std::vector<int>& workers);

  // The number of times that a worker was lost: it went away, or another
  // process has taken its place. A worker that is sent back to register is not
  // lost.
  int64_t losses() const { return losses_; }

  // True if the worker is dead or hangs: its current pass has lasted
  // `patience`, and four times as long as its passes usually do.
  bool IsAway(int worker) const;
  // True if each of the workers has ended kFewPasses.
  bool AreKnown(const std::vector<int>& workers) const;

  // The workers that are not away.
  std::vector<int> Present(const std::vector<int>& workers) const;
  std::vector<PassDistribution> Distributions(const std::vector<int>& workers,
                                              PassTimes::Memory memory) const;
  // Describes the slowest of `workers` with its mean time, and the mean of all,
  // for messages: "worker 3 takes 201 ms".
  std::string Describe(const std::vector<int>& workers) const;

 private:
  struct Known {
    PassTimes times{kHalfLife};
    uint64_t incarnation = 0;
    int64_t passes = 0;
    bool alive = false;
    bool lost = false;  // or sent back, and not back
    absl::Duration at_hand;
  };

  double MeanOf(const Known& known) const;
  void CountLoss(Known& known, const WorkerNews& news, bool replaced);

  const absl::Duration patience_;
  int64_t losses_ = 0;
  std::map<int, Known> workers_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_TUNED_WORKERS_H_
