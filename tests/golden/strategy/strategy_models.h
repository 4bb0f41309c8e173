#ifndef LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_MODELS_H_
#define LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_MODELS_H_

#include <string>
#include <vector>

#include "strategy/trained_by.h"

namespace lockstep::golden {

// The models of strategy_training on one replica's examples, in the recorded
// order of operations: "linear", "embedding", "softmax". `values` are those of
// the scenario's variables. Throws BadTrace for values that do not fit.
strategy::LossAndGradients ComputeModel(const std::string& model,
                                        const std::vector<Value>& values,
                                        const Value& features,
                                        const Value& targets,
                                        int64_t global_batch);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_MODELS_H_
