#ifndef LOCKSTEP_WORKER_BLOCKS_REPLICA_TURNS_H_
#define LOCKSTEP_WORKER_BLOCKS_REPLICA_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/plan/variable_spec.h"
#include "worker/blocks/pass_series.h"
#include "worker/blocks/replica_mean.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// ReplicaTurns computes the batches of a worker's replicas one after the other,
// where one source computes for all of them, such as a user's program. The pass
// has the mean of their gradients: the bits of ReplicatedGradientSource, which
// computes them at the same time.
//
// To the source, the pass of batch `index` is the passes of batches
// index x replicas to index x replicas + replicas - 1, one for each replica.
//
// Threads: as GradientSource.
// Borrows: also the memory that the source writes its gradients to.
class ReplicaTurns final : public PassSeries {
 public:
  // There must be no tables.
  ReplicaTurns(GradientSource& source,
               const std::vector<VariableSpec>& variables, int replicas,
               GradientClipper& clipper, ParameterMemory& memory)
      : PassSeries(source, clipper),
        replicas_(replicas),
        memory_(memory),
        means_(variables.size()) {}

 protected:
  absl::StatusOr<int> Open(const PassId& pass, int64_t index) override;
  Part PartOf(const PassId& pass, int64_t index, int number) const override;
  void Reset() override;
  bool Add(size_t variable, bool absent) override;
  GradientResult Joined(
      const std::vector<GradientResult>& results) const override;

 private:
  const int replicas_;
  ParameterMemory& memory_;
  std::vector<ReplicaMean> means_;  // by variable
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_REPLICA_TURNS_H_
