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
// all exchange their results. A worker of n sends 2 (n - 1) / n times the bytes
// of a value, where one exchange of everything costs n - 1 times.
namespace lockstep::strategy {

// Whether two calls cost less than one. Every worker must decide alike, so it
// depends on the arguments alone. `bytes` are those of all values of a replica.
bool PaysToSlice(int workers, size_t bytes);

// Reduces by_rank[r][i], value i of this worker's replica r, in the order of
// the replicas of all workers: the bits of lockstep::Reduce() with
// SumOrder::kRank. All replicas here must have the same types and shapes.
// `description` must say them, so that workers which differ are refused at all.
//
// Errors: as Collective::Exchange()
absl::StatusOr<std::vector<Value>> ReduceInSlices(
    Collective& group, ReduceOp op, const std::string& description,
    absl::Span<const std::vector<Value>> by_rank);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_SLICED_REDUCTION_H_
