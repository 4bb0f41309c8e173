#include "worker/models/zoo/resnet.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/models/layers/dense_layer.h"
#include "worker/models/layers/layer_stack.h"
#include "worker/models/layers/norm_layers.h"
#include "worker/models/layers/plain_layers.h"
#include "worker/models/model_limits.h"
#include "worker/models/sequential_model.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kMaxBlocks = 64;

absl::Status CheckConfig(const ModelConfig& config, const ModelInput& input) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPictures("resnet", input));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGiven("resnet", "model.conv_filters", config.conv_filters));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerSizes("model.conv_filters", config.conv_filters));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotGiven("resnet", "model.hidden_units", config.hidden_units));
  return CheckSetting("model.layers", config.layers, kMaxBlocks);
}

// A convolution and its normalisation.
struct Normalised {
  std::string name;
  int64_t kernel_size;
  int64_t channels;
  int64_t filters;
  int64_t stride;
};

void Append(const Normalised& spec, ElementType type, Layers& layers) {
  layers.push_back(std::make_unique<ConvolutionLayer>(
      ConvolutionLayer::Options{.name = spec.name,
                                .kernel_size = spec.kernel_size,
                                .channels = spec.channels,
                                .filters = spec.filters,
                                .stride = spec.stride},
      type));
  layers.push_back(std::make_unique<BatchNormLayer>(
      absl::StrCat(spec.name, "/norm"), spec.filters, type));
}

void AppendBlock(const std::string& name, int64_t channels, int64_t filters,
                 int64_t stride, ElementType type, Layers& layers) {
  Layers branch;
  Append({absl::StrCat(name, "/conv1"), 3, channels, filters, stride}, type,
         branch);
  branch.push_back(std::make_unique<ReluLayer>(type));
  Append({absl::StrCat(name, "/conv2"), 3, filters, filters, 1}, type, branch);
  // The shortcut is the input itself unless the branch changes its shape.
  Layers shortcut;
  if (channels != filters || stride != 1) {
    Append({absl::StrCat(name, "/shortcut"), 1, channels, filters, stride},
           type, shortcut);
  }
  layers.push_back(std::make_unique<ResidualLayer>(std::move(branch),
                                                   std::move(shortcut), type));
  layers.push_back(std::make_unique<ReluLayer>(type));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeResnet(const ModelConfig& config,
                                                  const ModelInput& input,
                                                  ElementType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, input));
  Layers layers;
  // "Deep Residual Learning" (He et al. 2015), with the small first convolution
  // of its networks for CIFAR-10: no pooling follows it.
  int64_t channels = config.conv_filters[0];
  Append({"conv", 3, input.channels, channels, 1}, type, layers);
  layers.push_back(std::make_unique<ReluLayer>(type));
  for (size_t stage = 0; stage < config.conv_filters.size(); ++stage) {
    const int64_t filters = config.conv_filters[stage];
    // The first block of each later stage halves the picture and changes the
    // number of channels.
    for (int64_t block = 1; block <= config.layers; ++block) {
      AppendBlock(absl::StrCat("stage", stage + 1, "/block", block), channels,
                  filters, stage > 0 && block == 1 ? 2 : 1, type, layers);
      channels = filters;
    }
  }
  layers.push_back(std::make_unique<GlobalAveragePoolLayer>(type));
  AppendDense(channels, {}, input.classes, type, layers);
  return SequentialModel::Make(input, type, std::move(layers));
}

}  // namespace lockstep::worker
