#ifndef LOCKSTEP_WORKER_DEVICE_MODEL_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_DEVICE_MODEL_GRADIENT_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/replay/recorder.h"
#include "worker/data/prefetching_batches.h"
#include "worker/device/device_variables.h"
#include "worker/device/pass_numbers.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"
#include "worker/models/model.h"

namespace lockstep {

// ModelGradientSource computes a model's gradients on a backend, batch by
// batch from a data source. A batch may be computed in several parts whose
// gradients are added up on the device, so that it may be larger than what
// fits there.
//
// A pass waits for its device at its end alone; what it has queued by then runs
// even if nobody wants it any more. Gradients leave while the device goes on.
// But where the backend can record, passes of a small model are recorded and
// replayed at once, and gradients leave when all are there.
//
// Borrows: model, backend and memory.
class ModelGradientSource final : public GradientSource {
 public:
  struct Options {
    int64_t micro_batches = 1;  // > 0, dividing the batch size
    // NaN and infinities: an error instead of a gradient that is sent. They
    // are counted either way; here the count comes ahead of the gradient.
    bool refuse_non_finite = false;
    uint64_t key = 0;    // of random numbers; each batch has its own
    bool replay = true;  // if not, every pass is launched
  };

  // Of all variables, up to which a model is small: this much takes some 80
  // microseconds to copy, about what its passes take to launch. Beyond, it is
  // worth more that copies run beside the pass.
  static constexpr size_t kMaxReplayedBytes = size_t{4} << 20;

  ModelGradientSource(Model& model, const ModelInput& input,
                      ComputeBackend& backend, BatchSource batches,
                      const ParameterMemory& memory, const Options& options);

  bool WaitsForValues() const override { return true; }

  // In the result, `non_finite` counts elements of all gradients.
  //
  //   kInvalidArgument  also: a gradient that is refused, or a batch that does
  //                     not divide
  absl::StatusOr<GradientResult> Compute(int64_t index,
                                         const PassHooks& hooks) override;

  // How many passes were replayed.
  int64_t replays() const { return recorder_.replays(); }

 private:
  struct Pass {
    const PassHooks& outer;
    absl::Status status = absl::OkStatus();  // of what hooks could not return
    bool last = false;                       // part of the batch
    bool first = false;
    bool numbers_are_here = false;
  };

  bool MayReplay() const;
  absl::Status PrepareDevice(const Batch& batch, const PassHooks& hooks);
  // Waits until the values are there, and lets what follows use them.
  absl::Status BeforeUse(size_t first, size_t count, const PassHooks& hooks);
  absl::Status ComputePart(const Batch& batch, int64_t index, int64_t part,
                           Pass& pass);
  // The whole batch, recorded or replayed where that may be.
  absl::Status ComputeAtOnce(const Batch& batch, Pass& pass);
  absl::Status CallOperations(const BatchView& view);
  RecordingKey KeyOf(const BatchView& view) const;
  // A part's gradient of a variable is final.
  absl::Status Add(size_t variable, Pass& pass);
  absl::Status Send(size_t variable, Pass& pass);
  absl::Status Deliver(size_t variable, Pass& pass);
  // Tells of gradients that are here, unless they are refused.
  absl::Status Report(bool wait, Pass& pass);
  absl::Status CheckFinite(size_t variable);

  // The numbers of a pass: the loss of each part, then how many elements of
  // each variable's gradient are not finite.
  size_t CountIndex(size_t variable) const {
    return static_cast<size_t>(options_.micro_batches) + variable;
  }
  GradientResult Result(const Batch& batch) const;

  Model& model_;
  ComputeBackend& backend_;
  PrefetchingBatches batches_;
  const Options options_;
  DeviceVariables device_;
  BatchStage stage_;
  std::vector<Scratch> part_memory_;
  std::vector<Tensor> parts_;  // the gradients of one part; empty if one is all
  PassNumbers numbers_;
  Recorder recorder_;
  bool replays_;
  std::vector<size_t> order_;  // in which CallOperations() made the gradients
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DEVICE_MODEL_GRADIENT_SOURCE_H_
