#ifndef LOCKSTEP_WORKER_BLOCKS_BLOCK_SOURCE_H_
#define LOCKSTEP_WORKER_BLOCKS_BLOCK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/step_vocabulary.h"
#include "common/plan/variable_spec.h"
#include "worker/blocks/block_sum.h"
#include "worker/blocks/row_block_sum.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// BlockSource computes a block of micro-batches of a shared step as one pass:
// another source computes one after the other, and the pass has the sum of
// their gradients. To the source behind it every micro-batch is a pass.
//
//   Prepare(3)  Begin(3)  Finish(3)  Prepare(4)  Begin(4)  Finish(4)
//                         + keeps                          + adds, reports
//
// Gradients are clipped one by one, before they are added. They are reported
// while the last micro-batch is computed.
//
// Borrows: the source, the memory that it writes its gradients to, and the
//          clipper.
class BlockSource final : public GradientSource {
 public:
  // `numbers` is the number of micro-batches of a step.
  BlockSource(GradientSource& source,
              const std::vector<VariableSpec>& variables, int numbers,
              GradientClipper& clipper, ParameterMemory& memory);

  //   kInvalidArgument  the pass has several micro-batches, and the sum of the
  //                     gradients of a variable is not that of the servers
  absl::Status Prepare(const PassId& pass, int64_t index) override;
  absl::Status Begin(int64_t index, GradientPass& pass) override;
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override;

 private:
  class NumberPass;

  // Adds the gradient of the current micro-batch to the block's sum. After the
  // last micro-batch, writes the sum to memory, and returns false if no
  // micro-batch has a gradient for the variable.
  bool Add(size_t variable, bool absent);
  // Finishes the current micro-batch, number `number_` of the block.
  absl::StatusOr<GradientResult> FinishNumber(GradientPass& pass);

  GradientSource& source_;
  const std::vector<VariableSpec> variables_;
  const int numbers_;
  GradientClipper& clipper_;
  ParameterMemory& memory_;
  std::vector<BlockSum> sums_;         // by variable that is no table
  std::vector<RowBlockSum> row_sums_;  // by variable that is one
  // The current pass.
  PassId pass_;
  int64_t index_ = 0;  // of the batch of its first micro-batch
  int count_ = 1;      // micro-batches
  int number_ = 0;     // micro-batches that are finished
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_BLOCK_SOURCE_H_
