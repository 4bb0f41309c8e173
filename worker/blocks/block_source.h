#ifndef LOCKSTEP_WORKER_BLOCKS_BLOCK_SOURCE_H_
#define LOCKSTEP_WORKER_BLOCKS_BLOCK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/plan/variable_spec.h"
#include "worker/blocks/block_sum.h"
#include "worker/blocks/pass_series.h"
#include "worker/blocks/row_block_sum.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// BlockSource computes a block of micro-batches of a shared step as one pass,
// which has the sum of their gradients.
//
// Threads: as GradientSource.
// Borrows: also the memory that the source writes its gradients to.
class BlockSource final : public PassSeries {
 public:
  // `numbers` is the number of micro-batches of a step.
  BlockSource(GradientSource& source,
              const std::vector<VariableSpec>& variables, int numbers,
              GradientClipper& clipper, ParameterMemory& memory);

 protected:
  //   kInvalidArgument  the pass has several micro-batches, and the sum of the
  //                     gradients of a variable is not that of the servers
  absl::StatusOr<int> Open(const PassId& pass, int64_t index) override;
  Part PartOf(const PassId& pass, int64_t index, int number) const override;
  void Reset() override;
  bool Add(size_t variable, bool absent) override;
  // The loss is the mean over all examples.
  GradientResult Joined(
      const std::vector<GradientResult>& results) const override;

 private:
  const std::vector<VariableSpec> variables_;
  const int numbers_;
  ParameterMemory& memory_;
  std::vector<BlockSum> sums_;         // by variable that is no table
  std::vector<RowBlockSum> row_sums_;  // by variable that is one
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_BLOCK_SOURCE_H_
