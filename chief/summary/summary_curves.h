#ifndef LOCKSTEP_CHIEF_SUMMARY_SUMMARY_CURVES_H_
#define LOCKSTEP_CHIEF_SUMMARY_SUMMARY_CURVES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/members/membership_table.h"
#include "chief/operators/status_table.h"
#include "common/plan/figure.h"

namespace lockstep::chief {

// A job as it is at one instant.
struct SummarySample {
  absl::Time now = {};
  StatusTable::View job = {};
  std::vector<MembershipTable::Member> members = {};
  double learning_rate = 0;  // of the next step
  // The job changes replicas_to_aggregate by itself, and notices say why.
  bool tunes_backups = false;
};

// Points of curves, all at one step. `run` is the name of a run of TensorBoard:
// "" for the job, "worker_1", "evaluator".
struct SummaryPoints {
  std::string run = {};
  int64_t step = 0;
  std::vector<NamedFigure> values = {};
};

// SummaryCurves turns samples of a job into points of curves:
//
//   job        loss                   mean of the workers' newest losses that
//                                     are recent and finite
//              learning_rate
//              steps_per_second, step_seconds
//              examples_per_second, passes_accepted_per_second,
//              passes_stale_per_second   of all workers together
//              waiting_fraction       mean of the workers'
//              and figures of a user's program, mean of the workers'; one that
//              has the name of another curve is that of "program/NAME"
//   worker_N   the same of one worker, without steps and the learning rate
//   evaluator  loss, accuracy, auc, or the figures of a user's evaluator, at
//              the step of the checkpoint
//
// Rates and fractions cover the time between a worker's newest report and the
// one that an earlier sample had. They are absent until there are two reports
// of its incarnation. A sample without a new report repeats them; if the worker
// has been silent for more than twice the time that they cover, they are 0. A
// sample without a new step adds nothing to the curves of the job and of the
// workers.
//
// Threads: not thread-safe.
class SummaryCurves {
 public:
  // Samples must come in the order of time. The job must have begun to train.
  std::vector<SummaryPoints> Add(const SummarySample& sample);

 private:
  struct Seen {
    uint64_t incarnation = 0;
    absl::Time at = {};  // of the report
    Progress progress = {};
    absl::Duration covered = {};  // by `rates`
    std::vector<NamedFigure> rates = {};
  };

  std::vector<SummaryPoints> AddWorkers(const SummarySample& sample);
  // Notes the newest report of a worker, and computes the rates from it.
  static void See(const MembershipTable::Member& member, absl::Time now,
                  Seen& seen);

  std::optional<int64_t> step_;  // of the newest sample
  int64_t scored_ = -1;          // step of the newest score; -1: none
  std::map<int, Seen> seen_;     // by worker
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SUMMARY_SUMMARY_CURVES_H_
