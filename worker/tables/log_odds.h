#ifndef LOCKSTEP_WORKER_TABLES_LOG_ODDS_H_
#define LOCKSTEP_WORKER_TABLES_LOG_ODDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/numeric/auc.h"
#include "worker/tables/table_workload.h"

// Functions for models of two classes, which predict the log-odds of the
// positive class: the logarithm of p / (1 - p).
namespace lockstep::worker {

// Returns true for the label 1, and false for 0 and -1.
//
//   kInvalidArgument  another number: of labels 1 and 2, for example, both
//                     could otherwise count as the positive class
absl::StatusOr<bool> BinaryLabel(double label);

// Returns minus the logarithm of the probability of the class `label`; >= 0.
double CrossEntropy(bool label, double log_odds);

// Returns the probability of the positive class. The derivative of
// CrossEntropy() with respect to the log-odds is this minus the label.
double Probability(double log_odds);

// LogOddsScore collects a model's predictions on a test set.
//
// Threads: not thread-safe.
class LogOddsScore {
 public:
  void Add(double log_odds, bool label);
  // Returns means over all predictions; there must be at least one. The AUC
  // orders by log-odds.
  TableScore Get() const;

 private:
  double loss_ = 0;
  double correct_ = 0;
  std::vector<ScoredExample> scored_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_LOG_ODDS_H_
