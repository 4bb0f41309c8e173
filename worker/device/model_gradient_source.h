#ifndef LOCKSTEP_WORKER_DEVICE_MODEL_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_DEVICE_MODEL_GRADIENT_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/trace/span_recorder.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/replay/recorder.h"
#include "worker/data/prefetching_batches.h"
#include "worker/device/device_variables.h"
#include "worker/device/pass_numbers.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// ModelGradientSource computes a model's gradients on a backend, batch by
// batch from a data source. A batch may be computed in several parts whose
// gradients are added up on the device, so that it may be larger than the
// device could hold at once.
//
// A pass waits for the device only at its end, and operations queued by then
// run even if the pass is dropped. Gradients are sent while the device
// computes. If the backend can record, a pass of a small model is instead
// recorded and replayed as a whole, and its gradients are sent when all are
// there.
//
// Threads: not thread-safe.
// Borrows: model, backend and memory.
class ModelGradientSource final : public GradientSource {
 public:
  struct Options {
    int64_t micro_batches = 1;  // > 0, dividing the batch size
    // If set, a gradient with NaN or infinite elements is an error and is not
    // reported; the count of such elements is copied before the gradient. If
    // not set, such elements are still counted.
    bool refuse_non_finite = false;
    uint64_t key = 0;               // of random numbers; each batch has its own
    bool replay = true;             // if not, every pass is launched
    SpanRecorder* spans = nullptr;  // of waits for batches; borrowed
  };

  // A model is small if its variables have at most this many bytes: these take
  // some 80 microseconds to copy, about as long as a pass takes to launch. For
  // larger models, copies that run beside the pass gain more than a replay.
  static constexpr size_t kMaxReplayedBytes = size_t{4} << 20;

  ModelGradientSource(Model& model, const ModelInput& input,
                      ComputeBackend& backend, BatchSource batches,
                      const ParameterMemory& memory, const Options& options);

  bool MayBeginEarly() const override { return true; }

  //   kInvalidArgument  also: the batch does not divide into its parts
  absl::Status Begin(int64_t index, GradientPass& pass) override;

  // In the result, `non_finite` counts elements of all gradients.
  //
  //   kInvalidArgument  also: a gradient that is refused
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override;

  // Returns the number of passes that were replayed.
  int64_t replays() const { return recorder_.replays(); }

 private:
  class PartPass;

  bool MayReplay() const;
  absl::Status PrepareDevice(bool has_all_values);
  // Returns the examples of a part of the current batch, where the backend
  // reads them.
  absl::StatusOr<BatchView> ViewOf(int64_t part);
  // Waits until the values are in the worker's memory, and lets the following
  // operations use them.
  absl::Status NeedValues(size_t first, size_t count, GradientPass& pass);
  absl::Status BeginPart(int64_t part, PartPass& part_pass);
  absl::Status FinishPart(int64_t part, PartPass& part_pass);
  // Computes the whole batch, recorded or replayed.
  absl::Status FinishAtOnce(GradientPass& pass);
  absl::Status CallOperations();
  RecordingKey KeyOf(const BatchView& view) const;
  // Adds a part's final gradient of a variable to those of the parts before,
  // and sends the sum after the last part.
  absl::Status Add(size_t variable, int64_t part, GradientPass& pass);
  absl::Status Send(size_t variable, GradientPass& pass);
  // Starts to copy a gradient to the worker's memory.
  absl::Status Deliver(size_t variable, GradientPass& pass);
  // Reports the gradients that have arrived, unless they are refused.
  absl::Status Report(bool wait, GradientPass& pass);
  absl::Status CheckFinite(size_t variable);

  // Returns the index of a variable's count into the numbers of a pass. The
  // losses of the parts come first, then, by variable, the number of elements
  // of its gradient that are not finite.
  size_t CountIndex(size_t variable) const {
    return static_cast<size_t>(options_.micro_batches) + variable;
  }
  GradientResult Result() const;

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
  // The current pass, from Begin() on.
  int64_t index_ = 0;
  Batch batch_;
  BatchView view_;             // of its first part
  std::vector<size_t> order_;  // in which CallOperations() made the gradients
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DEVICE_MODEL_GRADIENT_SOURCE_H_
