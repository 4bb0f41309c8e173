#ifndef LOCKSTEP_TESTS_CONFORMANCE_OPTIMIZER_OPTIMIZER_SCENARIO_H_
#define LOCKSTEP_TESTS_CONFORMANCE_OPTIMIZER_OPTIMIZER_SCENARIO_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "common/job/job_config.h"
#include "server/optimizer/adam_powers.h"

namespace lockstep::testing {

// A tensor of any dtype; every float32 value is a double.
using Values = std::vector<double>;

// The whole state of a scenario at one moment.
struct OptimizerState {
  std::vector<Values> variables;
  std::vector<std::vector<Values>> slots;  // by variable, in order of creation
  AdamPowers powers;
};

// What one variable got in one step.
struct RecordedGradient {
  enum class Kind { kNone, kDense, kSparse };
  Kind kind = Kind::kNone;
  Values values;  // dense only
};

struct RecordedStep {
  std::vector<RecordedGradient> gradients;  // by variable
  bool ok = true;
  OptimizerState after;
};

// OptimizerScenario is one recorded run of TensorFlow's optimizer.
struct OptimizerScenario {
  std::string name;
  OptimizerConfig config;
  double learning_rate = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::string> variable_names;
  std::vector<std::vector<std::string>> slot_variables;  // by variable
  OptimizerState initial;
  std::vector<RecordedStep> steps;
};

// Reads a file of one scenario per line; empty if it cannot be opened.
std::vector<OptimizerScenario> ReadOptimizerScenarios(const std::string& path);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_CONFORMANCE_OPTIMIZER_OPTIMIZER_SCENARIO_H_
