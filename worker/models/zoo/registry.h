#ifndef LOCKSTEP_WORKER_MODELS_ZOO_REGISTRY_H_
#define LOCKSTEP_WORKER_MODELS_ZOO_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// Returns the values of model.kind for models without tables, in alphabetical
// order.
std::vector<std::string> ModelKinds();

// Makes the model of a job. Processes that make one from equal arguments get
// equal variables().
//
//   kInvalidArgument  unknown model.kind (the message lists all and the nearest
//                     one), a field of `config` or `input` out of range, or a
//                     field that this kind does not have
absl::StatusOr<std::unique_ptr<Model>> MakeModel(
    const ModelConfig& config, const ModelInput& input,
    ElementType type = ElementType::kFloat32);

// Returns the variables as servers and the worker's memory keep them: those of
// the model, but with elements of config.variable_type.
std::vector<VariableSpec> KeptVariables(const Model& model,
                                        const ModelConfig& config);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_ZOO_REGISTRY_H_
