#ifndef LOCKSTEP_WORKER_LOCAL_LOCAL_STEPS_SOURCE_H_
#define LOCKSTEP_WORKER_LOCAL_LOCAL_STEPS_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/local/local_variables.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// LocalStepsSource makes several local steps in one pass (local SGD, DiLoCo)
// and reports the change of the values, before minus after, as the gradient.
// With H local steps, batch `index` of the job consists of the local batches
// index * H to index * H + H - 1: no two passes share one, and a pass that is
// redone repeats the same ones. Batches at the end of the input that make no
// whole pass are left out.
//
// The result has the mean of the losses, and the sums of the counts.
//
// Threads: not thread-safe.
// Borrows: the memory of the job's values.
class LocalStepsSource final : public GradientSource {
 public:
  // `source` must compute the gradients of one batch in the memory of
  // `variables`, and need no Prepare(). `clipping` applies to the gradients of
  // each local step, in elements of type `clipped`. `shared` has the values of
  // the job and takes the change.
  LocalStepsSource(std::unique_ptr<GradientSource> source,
                   std::unique_ptr<LocalVariables> variables,
                   const ParameterMemory& shared, int64_t local_steps,
                   const ClippingConfig& clipping, DType clipped);

  //   kInvalidArgument  a step or index whose local steps have no number
  absl::Status Prepare(const PassId& pass, int64_t index) override;
  // Computes all local steps: they use memory of their own.
  absl::Status Begin(int64_t index, GradientPass& pass) override;
  // Reports the differences, the last variable's first.
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override;

 private:
  class LocalPass;

  absl::Status MakeStep(int64_t batch, GradientPass& pass);

  // Declared before the source, which computes in this memory and ends first.
  const std::unique_ptr<LocalVariables> variables_;
  const std::unique_ptr<GradientSource> source_;
  const ParameterMemory& shared_;
  const int64_t steps_;
  const size_t num_variables_;
  GradientClipper clipper_;
  int64_t global_step_ = 0;
  GradientResult result_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOCAL_LOCAL_STEPS_SOURCE_H_
