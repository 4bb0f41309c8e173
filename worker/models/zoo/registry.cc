#include "worker/models/zoo/registry.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/flags/nearest_match.h"
#include "worker/models/model_limits.h"
#include "worker/models/zoo/cnn.h"
#include "worker/models/zoo/mlp.h"
#include "worker/models/zoo/resnet.h"
#include "worker/models/zoo/softmax.h"
#include "worker/models/zoo/transformer.h"

namespace lockstep::worker {
namespace {

struct Registration {
  const char* kind;
  absl::StatusOr<std::unique_ptr<Model>> (*make)(const ModelConfig& config,
                                                 const ModelInput& input,
                                                 ElementType type);
};

// Every model, in alphabetical order. `input` and `type` have been checked.
constexpr Registration kModels[] = {
    {"cnn", MakeCnn},
    {"mlp", MakeMlp},
    {"resnet", MakeResnet},
    {"softmax", MakeSoftmax},
    {"transformer", MakeTransformer},
};

absl::Status UnknownKind(const std::string& kind) {
  const std::vector<std::string> kinds = ModelKinds();
  std::string message =
      absl::StrCat("model.kind must be one of ", absl::StrJoin(kinds, ", "),
                   ", got \"", kind, "\"");
  if (std::optional<std::string> nearest = NearestMatch(kind, kinds)) {
    absl::StrAppend(&message, "; did you mean ", *nearest, "?");
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace

std::vector<std::string> ModelKinds() {
  std::vector<std::string> kinds;
  for (const Registration& model : kModels) kinds.emplace_back(model.kind);
  return kinds;
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelConfig& config,
                                                 const ModelInput& input,
                                                 ElementType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckModelInput(input));
  LOCKSTEP_RETURN_IF_ERROR(CheckModelType(type));
  for (const Registration& model : kModels) {
    if (config.kind == model.kind) return model.make(config, input, type);
  }
  return UnknownKind(config.kind);
}

std::vector<VariableSpec> KeptVariables(const Model& model,
                                        const ModelConfig& config) {
  std::vector<VariableSpec> variables = model.variables();
  for (VariableSpec& variable : variables) {
    // Workers compute in float32 or float64; servers and checkpoints keep the
    // variables in the job's type.
    variable.dtype = config.variable_type;
  }
  return variables;
}

}  // namespace lockstep::worker
