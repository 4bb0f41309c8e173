#ifndef LOCKSTEP_WORKER_BLOCKS_ROW_BLOCK_SUM_H_
#define LOCKSTEP_WORKER_BLOCKS_ROW_BLOCK_SUM_H_

#include <optional>
#include <vector>

#include "common/numeric/dtype.h"
#include "server/step/sparse_rows.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// RowBlockSum adds up the gradients of a table over the micro-batches of a
// block, as BlockSum does those of other variables: in the order of
// common/plan/number_tree.h and by the servers' own addition. Each row of the
// sum has the number of micro-batches with a gradient of it, by which servers
// divide.
//
// Memory:  the rows of all micro-batches so far, at most.
// Threads: not thread-safe.
class RowBlockSum {
 public:
  // Forgets the gradients so far.
  void Reset() { stack_.clear(); }

  // Adds the gradient of micro-batch `index` of `count`, which must follow each
  // other from 0: that of `rows`, of `dtype`, unless it is absent. Returns the
  // sum after the last one; nullopt before that, or if all are absent.
  std::optional<RowSum> Add(int index, int count, DType dtype,
                            const TableRows& rows, bool absent);

 private:
  // An absent gradient is nullopt.
  std::vector<std::optional<server::SparseRows>> stack_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_ROW_BLOCK_SUM_H_
