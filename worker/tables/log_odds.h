#ifndef LOCKSTEP_WORKER_TABLES_LOG_ODDS_H_
#define LOCKSTEP_WORKER_TABLES_LOG_ODDS_H_

#include <vector>

#include "common/numeric/auc.h"
#include "worker/tables/table_workload.h"

// What models of two classes have in common: they say the logarithm of the odds
// that an example is of the positive one.
namespace lockstep::worker {

// Minus the logarithm of the probability of the class that `label` names.
double CrossEntropy(bool label, double log_odds);

// The probability of the positive class. The derivative of CrossEntropy() with
// respect to the log-odds is this minus the label.
double Probability(double log_odds);

// LogOddsScore collects a model's predictions on a test set.
class LogOddsScore {
 public:
  void Add(double log_odds, bool label);
  // Means over all, of which there is at least one. The AUC orders by log-odds.
  TableScore Get() const;

 private:
  double loss_ = 0;
  double correct_ = 0;
  std::vector<ScoredExample> scored_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_LOG_ODDS_H_
