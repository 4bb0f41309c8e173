#include "worker/tables/table_gradient_source.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::Status TableGradientSource::Prepare(const PassId& /*pass*/,
                                          int64_t index) {
  // A failure below leaves rows of no batch in memory.
  prepared_ = -1;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> examples,
                            schedule_.Batch(index));
  Fingerprint draws;
  draws.Add(seed_).Add(static_cast<uint64_t>(index));
  LOCKSTEP_RETURN_IF_ERROR(workload_.Prepare(examples, draws.value(), memory_));
  prepared_ = index;
  return absl::OkStatus();
}

absl::Status TableGradientSource::Begin(int64_t index, GradientPass& pass) {
  if (index != prepared_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "batch ", index, " has not been prepared; ", prepared_, " has"));
  }
  return pass.NeedValues(0, workload_.variables().size());
}

absl::StatusOr<GradientResult> TableGradientSource::Finish(GradientPass& pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(const GradientResult result,
                            workload_.Compute(memory_));
  // The last first: all workers must report in one order, and sources of models
  // do so in this one.
  for (size_t v = workload_.variables().size(); v > 0; --v) {
    pass.GradientReady(v - 1);
  }
  return result;
}

}  // namespace lockstep::worker
