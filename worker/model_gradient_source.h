#ifndef LOCKSTEP_WORKER_MODEL_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_MODEL_GRADIENT_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/compute_backend.h"
#include "worker/data/prefetching_batches.h"
#include "worker/device_variables.h"
#include "worker/gradient_source.h"
#include "worker/models/model.h"
#include "worker/parameter_memory.h"

namespace lockstep {

// ModelGradientSource computes a model's gradients on a backend, batch by
// batch from a data source. A batch may be computed in several parts whose
// gradients are added up on the device, so that it may be larger than what
// fits there.
//
// Borrows: model, backend and memory.
class ModelGradientSource final : public GradientSource {
 public:
  struct Options {
    int64_t micro_batches = 1;  // > 0, dividing the batch size
    // NaN and infinities: an error instead of a gradient that is sent. They
    // are counted either way.
    bool refuse_non_finite = false;
    uint64_t key = 0;  // of random numbers; each batch has its own
  };

  ModelGradientSource(Model& model, const ModelInput& input,
                      ComputeBackend& backend, BatchSource batches,
                      const ParameterMemory& memory, const Options& options);

  // In the result, `non_finite` counts elements of all gradients.
  //
  //   kInvalidArgument  also: a gradient that is refused, or a batch that does
  //                     not divide
  absl::StatusOr<GradientResult> Compute(int64_t index,
                                         const PassHooks& hooks) override;

 private:
  struct Pass {
    const PassHooks& outer;
    absl::Status status = absl::OkStatus();  // of what hooks could not return
    int64_t non_finite = 0;
    bool last = false;  // part of the batch
    bool first = false;
  };

  absl::Status PrepareDevice(const Batch& batch);
  absl::StatusOr<double> ComputePart(const Batch& batch, int64_t index,
                                     int64_t part, Pass& pass);
  // A part's gradient of a variable is final.
  absl::Status Add(size_t variable, Pass& pass);
  absl::Status Send(size_t variable, Pass& pass);

  Model& model_;
  ComputeBackend& backend_;
  PrefetchingBatches batches_;
  const Options options_;
  DeviceVariables device_;
  BatchStage stage_;
  std::vector<Scratch> part_memory_;
  std::vector<Tensor> parts_;  // the gradients of one part; empty if one is all
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_MODEL_GRADIENT_SOURCE_H_
