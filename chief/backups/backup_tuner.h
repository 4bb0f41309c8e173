#ifndef LOCKSTEP_CHIEF_BACKUPS_BACKUP_TUNER_H_
#define LOCKSTEP_CHIEF_BACKUPS_BACKUP_TUNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/backups/tuned_workers.h"

namespace lockstep::chief {

// BackupTuner chooses how many gradients a step takes, A, while a job runs.
// With the workers' distributions of pass times, a step that takes the first k
// of n gradients lasts the expected time of the k-th arrival plus a constant
// time for transfer, update and commit. A is the k with the least time per
// gradient. A worker that is always slow thus becomes a backup.
//
//   all take part -> (each worker is known) -> the best number <-> a trial
//
// If every worker counts, a step waits `patience` for a worker that dies or
// hangs, and some steps pass until it counts again: each loss costs kLossCost
// times `patience`. The tuner multiplies this cost by the frequency of losses.
//
// A number changes when another is better by kGain, twice in a row. The slow
// end of a distribution is seen only while a step waits for it. If more
// gradients would be better except for times that were seen long ago, a trial
// takes more for kTrialSteps steps, so rarely that trials cost kTrialCost of
// the time.
//
// Threads: not thread-safe. Decides only by its arguments.
class BackupTuner {
 public:
  static constexpr double kGain = 0.02;
  static constexpr double kTrialCost = 0.01;
  static constexpr double kLossCost = 1.5;
  static constexpr int64_t kTrialSteps = 4;
  // Steps between two decisions.
  static constexpr int64_t kEverySteps = 8;
  // Backups at most, so that a decision for thousands of workers is quick.
  static constexpr int kMostBackups = 128;

  struct Change {
    int replicas = 0;
    std::string why = {};  // one line, with the expected gain
  };

  // A step that has waited `patience` (> 0) for its last gradients continues
  // without them.
  explicit BackupTuner(absl::Duration patience)
      : patience_(patience), workers_(patience) {}

  // Records the newest report of a worker.
  void Hear(const WorkerNews& news) { heard_ = workers_.Hear(news) || heard_; }

  // Must be called at the step boundary after `step`, at which the job takes
  // `replicas` gradients of `workers`, ascending. Returns the number for the
  // next step if another one is better.
  std::optional<Change> AtBoundary(int64_t step, int replicas,
                                   const std::vector<int>& workers,
                                   absl::Time now);

  // Must be called while the step after `step` waits, with `arrived` of its
  // `replicas` gradients. Returns a smaller number if the missing gradients are
  // not expected.
  std::optional<Change> WhileWaiting(int64_t step, int replicas, int arrived,
                                     absl::Time now);

  // Must be called when time has passed that belongs to no step: a pause, or
  // servers that were away.
  void StoodStill() {
    since_.reset();
    // The wait of WhileWaiting() begins anew, even if the same step goes on
    // with as many gradients.
    waiting_step_ = -1;
  }

 private:
  struct Costs {
    std::vector<double> arrivals;  // by missing workers, in seconds
    double overhead = 0;
    double losses = 0;  // cost of losses in a second, where all count
    int present = 0;

    double StepSeconds(int replicas) const;
    double PerGradient(int replicas) const {
      return StepSeconds(replicas) / replicas;
    }
    int Fewest() const {
      return present - static_cast<int>(arrivals.size()) + 1;
    }
    int Best() const;
  };
  struct Mark {  // a boundary from which steps are measured
    int64_t step = 0;
    absl::Time at;
  };

  Costs MakeCosts(const std::vector<int>& present, PassTimes::Memory memory,
                  absl::Time now) const;
  // Updates the time of a step besides its passes (transfer, update, commit).
  void Measure(Costs& costs, int replicas, double step_seconds);
  // Updates the frequency of losses of workers.
  void CountLosses(absl::Time now);
  // The seconds between two losses; infinite: there was none.
  double LossInterval(absl::Time now) const;
  std::optional<Change> Decide(const Costs& costs, int64_t step, int replicas,
                               const std::vector<int>& workers, absl::Time now);
  std::optional<Change> EndTrial(const Costs& costs, int64_t step, int replicas,
                                 const std::vector<int>& workers,
                                 absl::Time now);
  std::optional<Change> MaybeTry(const Costs& costs, int64_t step, int replicas,
                                 const std::vector<int>& workers,
                                 absl::Time now);
  Change To(const Costs& costs, int64_t step, int from, int replicas,
            const std::vector<int>& workers, absl::Time now);

  const absl::Duration patience_;
  TunedWorkers workers_;
  bool heard_ = false;
  std::optional<Mark> since_;
  double step_seconds_ = 0;         // of recent steps with the number at hand
  std::optional<double> overhead_;  // seconds
  bool confirmed_ = false;  // the last decision found a better number, too
  absl::Time changed_ = absl::InfinitePast();
  int64_t losses_ = 0;
  absl::Time last_loss_ = absl::InfinitePast();  // or the first boundary
  double loss_interval_ = 0;                     // seconds; 0: no loss yet
  // A trial lasts until this step, and began from this number.
  struct Trial {
    int64_t until = 0;
    int before = 0;
  };
  std::optional<Trial> trial_;
  // The step at hand.
  int64_t waiting_step_ = -1;
  int arrived_ = 0;
  absl::Time last_arrival_ = absl::InfinitePast();
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_BACKUP_TUNER_H_
