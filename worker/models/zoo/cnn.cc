#include "worker/models/zoo/cnn.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/models/layers/conv_layer.h"
#include "worker/models/layers/dense_layer.h"
#include "worker/models/model_limits.h"
#include "worker/models/sequential_model.h"

namespace lockstep::worker {
namespace {

absl::Status CheckConfig(const ModelConfig& config, const ModelInput& input) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPictures("cnn", input));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGiven("cnn", "model.conv_filters", config.conv_filters));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerSizes("model.conv_filters", config.conv_filters));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerSizes("model.hidden_units", config.hidden_units));
  return CheckKernelSize(config.kernel_size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeCnn(const ModelConfig& config,
                                               const ModelInput& input,
                                               ElementType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, input));

  Layers layers;
  ModelInput image = input;  // the input of the next layer
  for (int64_t filters : config.conv_filters) {
    layers.push_back(std::make_unique<ConvLayer>(
        ConvLayer::Options{.name = absl::StrCat("conv", layers.size() + 1),
                           .kernel_size = config.kernel_size,
                           .channels = image.channels,
                           .filters = filters},
        type));
    // The layer pools 2x2 windows, and keeps those that are cut off at an odd
    // edge.
    image.height = (image.height + 1) / 2;
    image.width = (image.width + 1) / 2;
    image.channels = filters;
  }
  AppendDense(image.elements(), config.hidden_units, input.classes, type,
              layers);
  return SequentialModel::Make(input, type, std::move(layers));
}

}  // namespace lockstep::worker
