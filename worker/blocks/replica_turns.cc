#include "worker/blocks/replica_turns.h"

namespace lockstep::worker {

absl::StatusOr<int> ReplicaTurns::Open(const PassId& /*pass*/,
                                       int64_t /*index*/) {
  return replicas_;
}

PassSeries::Part ReplicaTurns::PartOf(const PassId& pass, int64_t index,
                                      int number) const {
  return {pass, index * replicas_ + number};
}

void ReplicaTurns::Reset() {
  for (ReplicaMean& mean : means_) mean.Reset();
}

bool ReplicaTurns::Add(size_t variable, bool absent) {
  const DType dtype = memory_.dtype(variable);
  ReplicaMean& mean = means_[variable];
  if (!absent) mean.Add(dtype, memory_.gradient(variable));
  if (number() + 1 < count()) return true;
  return mean.Store(dtype, count(), memory_.gradient(variable));
}

GradientResult ReplicaTurns::Joined(
    const std::vector<GradientResult>& results) const {
  return ResultOfReplicas(results);
}

}  // namespace lockstep::worker
