#ifndef LOCKSTEP_COMMON_JOB_VARIABLE_SETTINGS_H_
#define LOCKSTEP_COMMON_JOB_VARIABLE_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/job/job_config.h"
#include "common/plan/variable_spec.h"

namespace lockstep {

// What a job says of one variable.
struct VariableSettings {
  int optimizer = 0;      // 0: the job's own; k: the k-th of its others, from 1
  bool averaged = false;  // a moving average of it is kept
  VariableConstraint constraint;  // kUnspecified: none
};

// By variable. Names are matched with shell patterns, in which '*' stands for
// any characters, '/' among them, '?' for one, and [ab] for one of those.
//
//   kInvalidArgument  a pattern that matches no variable, or two of a kind that
//                     match the same one; a growing table with what moves rows
//                     that no gradient is of, or in compatible mode. Names the
//                     field, pattern and variable
absl::StatusOr<std::vector<VariableSettings>> SettingsOf(
    const JobConfig& job, const std::vector<VariableSpec>& variables);

// Whether a pattern, as SettingsOf() has them, matches a variable's name.
bool MatchesVariable(const std::string& pattern, const std::string& name);

// The name in checkpoints of what is kept beside a variable: "w" and "Adam_1"
// make "w/Adam_1".
std::string TensorNameOf(absl::string_view variable, absl::string_view name);

// What a moving average is called beside its variable.
inline constexpr char kMovingAverageName[] = "ExponentialMovingAverage";

// What the keys of a growing table's rows are called beside the table.
inline constexpr char kKeysName[] = "keys";

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_VARIABLE_SETTINGS_H_
