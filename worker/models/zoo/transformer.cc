#include "worker/models/zoo/transformer.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/models/layers/dense_layer.h"
#include "worker/models/layers/embedding_layer.h"
#include "worker/models/layers/layer_stack.h"
#include "worker/models/layers/norm_layers.h"
#include "worker/models/layers/plain_layers.h"
#include "worker/models/model_limits.h"
#include "worker/models/sequential_model.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kMaxLayers = 256;
constexpr int64_t kMaxWidth = 1 << 14;
// GPT-2's deviation of initial weights.
constexpr double kDeviation = 0.02;

absl::Status CheckConfig(const ModelConfig& config, const ModelInput& input) {
  if (input.tokens == 0) {
    return absl::InvalidArgumentError(
        "model.kind \"transformer\" needs text; set data.train_text and "
        "data.sequence_length");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotGiven("transformer", "model.hidden_units", config.hidden_units));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotGiven("transformer", "model.conv_filters", config.conv_filters));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSetting("model.layers", config.layers, kMaxLayers));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSetting("model.width", config.width, kMaxWidth));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSetting("model.heads", config.heads, config.width));
  if (config.width % config.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.width must be a multiple of model.heads, ",
                     config.heads, ", got ", config.width));
  }
  return absl::OkStatus();
}

// Stacks the layers of one model.
class Builder {
 public:
  Builder(const ModelConfig& config, ElementType type)
      : config_(config), type_(type) {}

  std::unique_ptr<Layer> Dense(const std::string& name, int64_t inputs,
                               int64_t units, double deviation) const {
    return std::make_unique<DenseLayer>(
        DenseLayer::Options{
            .name = name,
            .inputs = inputs,
            .units = units,
            .weights = Initializer{Initializer::Kind::kNormal, 0, deviation}},
        type_);
  }

  std::unique_ptr<Layer> Norm(const std::string& name) const {
    return std::make_unique<LayerNormLayer>(name, config_.width, type_);
  }

  std::unique_ptr<Layer> Attention(const std::string& block) {
    Layers branch;
    const int64_t d = config_.width;
    branch.push_back(Norm(absl::StrCat(block, "/norm1")));
    // One matrix for queries, keys and values, side by side, as AttentionLayer
    // expects.
    branch.push_back(Dense(absl::StrCat(block, "/qkv"), d, 3 * d, kDeviation));
    branch.push_back(std::make_unique<AttentionLayer>(config_.heads, type_));
    branch.push_back(
        Dense(absl::StrCat(block, "/attention"), d, d, IntoTheSum()));
    return Residual(std::move(branch));
  }

  std::unique_ptr<Layer> Mlp(const std::string& block) {
    Layers branch;
    const int64_t d = config_.width;
    branch.push_back(Norm(absl::StrCat(block, "/norm2")));
    branch.push_back(
        Dense(absl::StrCat(block, "/hidden"), d, 4 * d, kDeviation));
    branch.push_back(
        std::make_unique<ActivationLayer>(Activation::kGelu, type_));
    branch.push_back(
        Dense(absl::StrCat(block, "/mlp"), 4 * d, d, IntoTheSum()));
    return Residual(std::move(branch));
  }

 private:
  // Every layer adds two branches to one sum. As in GPT-2, weights into it
  // start smaller by the root of their number, so that the sum's variance does
  // not grow with the depth.
  double IntoTheSum() const {
    return kDeviation / std::sqrt(2.0 * static_cast<double>(config_.layers));
  }

  std::unique_ptr<Layer> Residual(Layers branch) {
    if (config_.dropout > 0) {
      // Each layer has a salt of its own, so that no two drop the same
      // elements.
      branch.push_back(
          std::make_unique<DropoutLayer>(config_.dropout, ++dropouts_, type_));
    }
    return std::make_unique<ResidualLayer>(std::move(branch), Layers(), type_);
  }

  const ModelConfig& config_;
  const ElementType type_;
  uint64_t dropouts_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeTransformer(
    const ModelConfig& config, const ModelInput& input, ElementType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, input));
  Builder builder(config, type);
  Layers layers;
  layers.push_back(std::make_unique<EmbeddingLayer>(
      EmbeddingLayer::Options{.name = "embedding",
                              .tokens = input.classes,
                              .positions = input.tokens,
                              .width = config.width},
      type));
  for (int64_t i = 1; i <= config.layers; ++i) {
    const std::string block = absl::StrCat("block", i);
    layers.push_back(builder.Attention(block));
    layers.push_back(builder.Mlp(block));
  }
  // Blocks normalise their input, not their output, so the last sum needs a
  // norm.
  layers.push_back(builder.Norm("norm"));
  layers.push_back(
      builder.Dense("logits", config.width, input.classes, kDeviation));
  return SequentialModel::Make(input, type, std::move(layers));
}

}  // namespace lockstep::worker
