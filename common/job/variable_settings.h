#ifndef LOCKSTEP_COMMON_JOB_VARIABLE_SETTINGS_H_
#define LOCKSTEP_COMMON_JOB_VARIABLE_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/job/job_config.h"
#include "common/plan/variable_spec.h"

namespace lockstep {

// The settings of one variable.
struct VariableSettings {
  int optimizer = 0;              // 0: the job's own; k: the k-th other, from 1
  bool averaged = false;          // it has a moving average
  VariableConstraint constraint;  // kUnspecified: none
  bool decays = true;             // it has its optimizer's weight decay
  bool trained = true;            // false: it keeps its value
};

// Returns the settings by variable, as servers have them: in a job with local
// steps all trained variables have the job's own optimizer, since those of
// variable_optimizers are rules of the local steps. Names are matched with
// shell patterns: '*' matches any characters including '/', '?' one character,
// and [ab] one of those. Buffers match no pattern, and untrained variables only
// those of JobConfig::untrained.
//
//   kInvalidArgument  a pattern that matches no variable, or two of a kind that
//                     match the same one; no variable that is trained; a
//                     growing table in compatible mode, or with a rule that
//                     moves rows without a gradient; a table with weight decay
//                     or dampening; a variable with the name of the keys of a
//                     growing table, or of a moving average, in checkpoints; a
//                     number that CheckRounding() or CheckClippingLimit()
//                     refuses for the type of a variable. Names the field,
//                     pattern and variable
absl::StatusOr<std::vector<VariableSettings>> SettingsOf(
    const JobConfig& job, const std::vector<VariableSpec>& variables);

// Returns the optimizers that VariableSettings::optimizer counts: the job's,
// and behind them that of buffers and untrained variables, if there are any:
// gradient descent, for buffers at rate 1.
std::vector<OptimizerConfig> OptimizersOf(
    const JobConfig& job, const std::vector<VariableSpec>& variables);

// True if JobConfig::untrained names the variable, which so keeps its value.
bool IsUntrained(const JobConfig& job, const VariableSpec& variable);

// True if a pattern, as in SettingsOf(), matches a variable's name.
bool MatchesVariable(const std::string& pattern, const std::string& name);

// Returns the name in checkpoints of a tensor beside a variable: "w" and
// "Adam_1" make "w/Adam_1".
std::string TensorNameOf(absl::string_view variable, absl::string_view name);

// Name of a moving average beside its variable.
inline constexpr char kMovingAverageName[] = "ExponentialMovingAverage";

// Name of the keys of a growing table's rows beside the table.
inline constexpr char kKeysName[] = "keys";

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_VARIABLE_SETTINGS_H_
