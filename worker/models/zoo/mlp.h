#ifndef LOCKSTEP_WORKER_MODELS_ZOO_MLP_H_
#define LOCKSTEP_WORKER_MODELS_ZOO_MLP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// A multi-layer perceptron: a ReLU layer per entry of hidden_units, then the
// logits. Variables: hidden1/weights, hidden1/bias, ..., logits/weights,
// logits/bias.
//
//   kInvalidArgument  model.hidden_units is empty or out of range, or
//                     model.conv_filters is given
absl::StatusOr<std::unique_ptr<Model>> MakeMlp(const ModelConfig& config,
                                               const ModelInput& input,
                                               ElementType type);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_ZOO_MLP_H_
