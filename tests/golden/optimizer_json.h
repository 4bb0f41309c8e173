#ifndef LOCKSTEP_TESTS_GOLDEN_OPTIMIZER_JSON_H_
#define LOCKSTEP_TESTS_GOLDEN_OPTIMIZER_JSON_H_

#include <string>

#include "common/job/job_config.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

// An optimizer by TensorFlow's class name, without "Optimizer", and its
// constructor's arguments by name.
struct OptimizerRecord {
  OptimizerConfig config;
  double learning_rate = 0;
};

OptimizerRecord ReadOptimizer(const std::string& name, const Json& hyper);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_OPTIMIZER_JSON_H_
