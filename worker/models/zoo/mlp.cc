#include "worker/models/zoo/mlp.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/models/layers/dense_layer.h"
#include "worker/models/model_limits.h"
#include "worker/models/sequential_model.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Model>> MakeMlp(const ModelConfig& config,
                                               const ModelInput& input,
                                               ElementType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPictures("mlp", input));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGiven("mlp", "model.hidden_units", config.hidden_units));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerSizes("model.hidden_units", config.hidden_units));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotGiven("mlp", "model.conv_filters", config.conv_filters));

  Layers layers;
  AppendDense(input.elements(), config.hidden_units, input.classes, type,
              layers);
  return SequentialModel::Make(input, type, std::move(layers));
}

}  // namespace lockstep::worker
