#ifndef LOCKSTEP_SERVER_STATE_INITIALIZER_H_
#define LOCKSTEP_SERVER_STATE_INITIALIZER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/variable_spec.h"

namespace lockstep {

// Inputs and outputs of one unit, as TensorFlow counts them: rows and columns
// of a matrix; for more dimensions the last two, each times the product of the
// others (the receptive field); the length of a vector for both; 1 and 1 for a
// scalar.
struct Fans {
  double in = 1;
  double out = 1;
};
Fans ComputeFans(const std::vector<int64_t>& shape);

// Writes the initial values of elements `offset` and following into `values`,
// as many as it holds. Element i follows from (seed, spec.name, i) alone: the
// bits are the same however the variable is cut.
//
// `values` starts at a multiple of the element size.
//
//   kInvalidArgument  `values` is misaligned or no whole number of elements,
//                     or the range leaves the variable; unknown dtype
absl::Status FillInitialValues(const VariableSpec& spec, uint64_t seed,
                               int64_t offset, absl::Span<std::byte> values);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_STATE_INITIALIZER_H_
