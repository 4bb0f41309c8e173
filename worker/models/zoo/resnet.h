#ifndef LOCKSTEP_WORKER_MODELS_ZOO_RESNET_H_
#define LOCKSTEP_WORKER_MODELS_ZOO_RESNET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// A residual network for small pictures, as for CIFAR-10 in "Deep Residual
// Learning" (He et al. 2015): a 3x3 convolution; per entry of `conv_filters` a
// stage of `layers` blocks of two 3x3 convolutions, each normalised over the
// batch, where every stage but the first halves height and width; the mean over
// the picture; logits. Where a block changes shape, its shortcut is a 1x1
// convolution.
//
//   kInvalidArgument  model.conv_filters missing or out of range, model.layers
//                     out of range, fields of other models, or data that is
//                     text
absl::StatusOr<std::unique_ptr<Model>> MakeResnet(const ModelConfig& config,
                                                  const ModelInput& input,
                                                  ElementType type);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_ZOO_RESNET_H_
