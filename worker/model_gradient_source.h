#ifndef LOCKSTEP_WORKER_MODEL_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_MODEL_GRADIENT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/compute_backend.h"
#include "worker/data/prefetching_batches.h"
#include "worker/gradient_source.h"
#include "worker/models/model.h"
#include "worker/parameter_memory.h"

namespace lockstep {

// Views of a model's variables or gradients in the worker's memory.
std::vector<ConstTensor> ValueViews(const std::vector<VariableSpec>& variables,
                                    const ParameterMemory& memory);
std::vector<Tensor> GradientViews(const std::vector<VariableSpec>& variables,
                                  const ParameterMemory& memory);

// ModelGradientSource computes a model's gradients on a backend, batch by
// batch from a data source.
//
// Borrows: model, backend and memory.
class ModelGradientSource final : public GradientSource {
 public:
  ModelGradientSource(Model& model, const ModelInput& input,
                      ComputeBackend& backend, BatchSource batches,
                      const ParameterMemory& memory);

  absl::StatusOr<GradientResult> Compute(int64_t index,
                                         const PassHooks& hooks) override;

 private:
  Model& model_;
  const ModelInput input_;
  ComputeBackend& backend_;
  PrefetchingBatches batches_;
  const std::vector<ConstTensor> values_;
  const std::vector<Tensor> gradients_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_MODEL_GRADIENT_SOURCE_H_
