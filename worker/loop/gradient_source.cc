#include "worker/loop/gradient_source.h"

namespace lockstep::worker {

GradientResult ResultOfReplicas(absl::Span<const GradientResult> replicas) {
  GradientResult all;
  for (const GradientResult& result : replicas) {
    all.loss += result.loss;
    all.examples += result.examples;
    all.non_finite += result.non_finite;
  }
  all.loss /= static_cast<double>(replicas.size());
  return all;
}

}  // namespace lockstep::worker
