#ifndef LOCKSTEP_CHIEF_CHECKPOINT_INITIAL_VALUES_TEXT_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_INITIAL_VALUES_TEXT_H_

#include <string>
#include <vector>

#include "common/checkpoint/format/safetensors_file.h"
#include "common/plan/variable_spec.h"

namespace lockstep::chief {

// Returns a text with the number of a job's variables that begin with values of
// the file, and the names of those that do not, three at most, with the number
// of the others:
//
//   2 of 3 variables begin with the values of model.safetensors; "head/w" is
//   not in it and begins as without it
std::string InitialValuesText(const SafetensorsReader& values,
                              const std::vector<VariableSpec>& variables);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_INITIAL_VALUES_TEXT_H_
