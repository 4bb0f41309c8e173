#include "worker/models/zoo/softmax.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/models/layers/dense_layer.h"
#include "worker/models/model_limits.h"
#include "worker/models/sequential_model.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Model>> MakeSoftmax(const ModelConfig& config,
                                                   const ModelInput& input,
                                                   ElementType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPictures("softmax", input));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotGiven("softmax", "model.hidden_units", config.hidden_units));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotGiven("softmax", "model.conv_filters", config.conv_filters));

  Layers layers;
  layers.push_back(std::make_unique<DenseLayer>(
      DenseLayer::Options{.name = "softmax",
                          .inputs = input.elements(),
                          .units = input.classes,
                          .weights = Initializer{}},  // one layer may start at
                                                      // 0
      type));
  return SequentialModel::Make(input, type, std::move(layers));
}

}  // namespace lockstep::worker
