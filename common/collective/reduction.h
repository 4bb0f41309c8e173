#ifndef LOCKSTEP_COMMON_COLLECTIVE_REDUCTION_H_
#define LOCKSTEP_COMMON_COLLECTIVE_REDUCTION_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/value.h"
#include "common/numeric/sum_order.h"

// Functions that combine the values of several ranks into one. All are pure:
// the same arguments give the same bits on every member.
//
// Each addition and division rounds once in the element type. A mean is the sum
// divided once by the number of ranks, for integers as Mean() says. A single
// rank's value is returned as it is.
namespace lockstep {

enum class ReduceOp { kSum = 1, kMean = 2 };

// Combines `values`, by rank, of which there must be at least one.
//
//   kInvalidArgument  types or shapes differ; names both; as Value::Check();
//                     several values of a type that is no number
absl::StatusOr<Value> Reduce(ReduceOp op, SumOrder order,
                             absl::Span<const Value> values);

// Reduces several values at once: by_rank[r][i] is value i of rank r. The
// values are joined to packs, from the last to the first, and each pack is
// reduced as one tensor, so that the chunks of a ring run across values. A new
// pack begins when the current one has more than `bytes_per_pack` bytes; 0: one
// pack.
//
//   kInvalidArgument  as Reduce(); the values of a pack differ in type; the
//                     ranks have different numbers of values
absl::StatusOr<std::vector<Value>> ReducePacked(
    ReduceOp op, SumOrder order, absl::Span<const std::vector<Value>> by_rank,
    int64_t bytes_per_pack);

// Joins indices and rows in the order of the ranks; equal indices stay apart. A
// mean divides the rows.
//
//   kInvalidArgument  types or rows differ; as CheckSlices(); the mean of
//                     several slices of a type that is no number
absl::StatusOr<Slices> ReduceSlices(ReduceOp op,
                                    absl::Span<const Slices> slices);

// Parses "SUM" or "MEAN", in any case.
//
//   kInvalidArgument  neither
absl::StatusOr<ReduceOp> ParseReduceOp(std::string_view name);

// Returns the sums of the elements along an axis, without that axis. Sums of
// bfloat16 are rounded once at the end.
//
//   kInvalidArgument  `axis` is not in [-rank, rank); as Value::Check() and
//                     CheckIsNumber()
absl::StatusOr<Value> SumAlong(const Value& value, int64_t axis);

// Returns the sum divided by `count`: in the type of the value, which must be a
// number, but for integers float32 if they have 8 or 16 bits, else float64.
Value Mean(const Value& sum, double count);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_REDUCTION_H_
