#ifndef LOCKSTEP_WORKER_MODELS_ZOO_SOFTMAX_H_
#define LOCKSTEP_WORKER_MODELS_ZOO_SOFTMAX_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// Softmax regression: one layer from pixels to logits, starting at zero.
// Variables: softmax/weights, softmax/bias.
//
//   kInvalidArgument  model.hidden_units or model.conv_filters given
absl::StatusOr<std::unique_ptr<Model>> MakeSoftmax(const ModelConfig& config,
                                                   const ModelInput& input,
                                                   ElementType type);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_ZOO_SOFTMAX_H_
