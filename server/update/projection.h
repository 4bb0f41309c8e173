#ifndef LOCKSTEP_SERVER_UPDATE_PROJECTION_H_
#define LOCKSTEP_SERVER_UPDATE_PROJECTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"
#include "common/plan/variable_spec.h"

namespace lockstep::server {

// Checks that a part, `count` elements from `offset` on of the variable, can be
// projected onto a constraint: norms need whole rows.
//
//   kInvalidArgument  it holds a piece of a row; says how to cut variables
absl::Status CheckProjection(const VariableConstraint& constraint,
                             const VariableSpec& variable, int64_t offset,
                             int64_t count);

// The number of elements that share one norm: those of one first index, or all
// of a vector or a scalar.
int64_t RowElements(const VariableSpec& variable);

// Projects values onto the constraint, in place; no effect for kUnspecified.
// NaN stays. `values` must be whole rows of `row` elements of `dtype` and start
// at a multiple of its size.
//
// Norms are summed in float64, in order; elements of a row that is too long are
// multiplied by max_norm / norm in float64 and rounded once. Subnormal float32
// and float64 results are flushed, whatever the mode of the calling thread.
void Project(const VariableConstraint& constraint, DType dtype, int64_t row,
             absl::Span<std::byte> values);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_PROJECTION_H_
