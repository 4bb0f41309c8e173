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

// LocalStepsSource makes a pass of several local steps (local SGD, DiLoCo): the
// gradient that it reports is the change of the values, before minus after. The
// batch `index` of the job are the local batches index * H to index * H + H -
// 1, so that all of them differ and a pass that is redone is the same pass. At
// the end of the input, batches that make no whole pass are left out.
//
// The result has the mean of the losses, and the sums of the counts.
//
// Threads: not thread-safe.
// Borrows: the memory of the job's values.
class LocalStepsSource final : public GradientSource {
 public:
  // `source` computes the gradients of one batch in the memory of `variables`,
  // and must need no Prepare().
  // Gradients are clipped as `clipping` says before each local step.
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

  // Before the source, whose memory they own.
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
