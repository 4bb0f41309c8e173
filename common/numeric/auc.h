#ifndef LOCKSTEP_COMMON_NUMERIC_AUC_H_
#define LOCKSTEP_COMMON_NUMERIC_AUC_H_

#include <optional>
#include <utility>
#include <vector>

namespace lockstep {

// A score of an example and whether the example is of the positive class.
using ScoredExample = std::pair<double, bool>;

// The area under the ROC curve: how often a positive example has a higher score
// than a negative one, equal scores counting half (the Mann-Whitney statistic).
// Nothing where a class has no example.
std::optional<double> AreaUnderCurve(std::vector<ScoredExample> examples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_AUC_H_
