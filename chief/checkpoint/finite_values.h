#ifndef LOCKSTEP_CHIEF_CHECKPOINT_FINITE_VALUES_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_FINITE_VALUES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "chief/checkpoint/checkpoint_transfer.h"
#include "common/checkpoint/format/safetensors_file.h"
#include "common/numeric/dtype.h"
#include "common/plan/variable_spec.h"

namespace lockstep::chief {

// Returns the index of the first element that is NaN or infinite.
std::optional<size_t> FirstNonFinite(DType dtype,
                                     absl::Span<const char> little_endian);

// Checks the tensors of `values` that are variables of the job, of the same
// dtype and shape, but no growing tables. Buffers may hold any element, such as
// the -infinity of a mask.
// `on_transferred` is called with 0 of the bytes, once for each block that has
// been read.
//
//   kFailedPrecondition  an element is NaN or infinite: names the variable
//   and the errors of SafetensorsReader and `on_transferred`
absl::Status CheckFinite(const SafetensorsReader& values,
                         const std::vector<VariableSpec>& variables,
                         const OnTransferred& on_transferred = {});

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_FINITE_VALUES_H_
