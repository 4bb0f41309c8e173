#ifndef LOCKSTEP_WORKER_MODELS_ZOO_CNN_H_
#define LOCKSTEP_WORKER_MODELS_ZOO_CNN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// A convolutional network: convolution, ReLU and 2x2 max-pool per entry of
// conv_filters, a ReLU layer per entry of hidden_units, which may be empty,
// then the logits. Variables: conv1/filters, conv1/bias, ..., hidden1/weights,
// ..., logits/bias.
//
//   kInvalidArgument  model.conv_filters empty or out of range,
//                     model.hidden_units or model.kernel_size out of range
absl::StatusOr<std::unique_ptr<Model>> MakeCnn(const ModelConfig& config,
                                               const ModelInput& input,
                                               ElementType type);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_ZOO_CNN_H_
