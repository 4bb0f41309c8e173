#ifndef LOCKSTEP_COMMON_NUMERIC_AUC_H_
#define LOCKSTEP_COMMON_NUMERIC_AUC_H_

#include <optional>
#include <utility>
#include <vector>

namespace lockstep {

// A score of an example, and true if the example is of the positive class.
using ScoredExample = std::pair<double, bool>;

// The area under the ROC curve: the fraction of (positive, negative) pairs in
// which the positive example has the higher score; equal scores count half (the
// Mann-Whitney statistic). Nothing if a class has no example, or if a score is
// NaN, as those of a model that has diverged.
std::optional<double> AreaUnderCurve(std::vector<ScoredExample> examples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_AUC_H_
