#ifndef LOCKSTEP_STRATEGY_VALUES_SLICED_REDUCTION_H_
#define LOCKSTEP_STRATEGY_VALUES_SLICED_REDUCTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/collective.h"
#include "common/collective/reduction.h"

// A reduction in two calls: each worker adds up one slice of all values, then
// all workers exchange their results. Each of n workers sends 2 (n - 1) / n
// times the bytes of a value; in one exchange of all values it would send them
// n - 1 times.
namespace lockstep::strategy {

// Returns true if two calls cost less than one: a group that scatters by an
// exchange of everything would send more bytes in two. It depends on the
// arguments alone, because every worker must decide alike. `bytes` is the size
// of all values of one replica.
bool PaysToSlice(const Collective& group, size_t bytes);

// Reduces by_rank[r][i], value i of this worker's replica r, in the order of
// the replicas of all workers: the bits of lockstep::Reduce() with
// SumOrder::kRank. All replicas of this process must have the same types and
// shapes, and `description` must name these, so that the exchange fails at all
// workers if one differs.
//
//   kInvalidArgument  also: a worker gives other leaves than `description` says
//   others            as Collective::Exchange()
absl::StatusOr<std::vector<Value>> ReduceInSlices(
    Collective& group, ReduceOp op, const std::string& description,
    absl::Span<const std::vector<Value>> by_rank);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_SLICED_REDUCTION_H_
