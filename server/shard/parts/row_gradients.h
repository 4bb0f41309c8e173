#ifndef LOCKSTEP_SERVER_SHARD_PARTS_ROW_GRADIENTS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_ROW_GRADIENTS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/state/file/state_layout.h"
#include "server/step/engine.h"
#include "server/step/gradient.h"

// Gradients of some rows of a part that is a table, as strict mode takes them.
namespace lockstep::server {

// Checks a gradient of a table's part and makes it canonical: its rows ascend,
// and rows of the same index are added in the order of appearance. A gradient
// that is canonical already is not copied, unless it is bfloat16, which is
// converted to float32.
//
//   kInvalidArgument  no rows; another number of bytes than the rows need; rows
//                     of another width; an index beyond the part; counts that
//                     are not one for each row and above 0, or with a repeated
//                     row; elements of another type than the variable's, or
//                     bfloat16 for a table that is not float32. The message
//                     names part, field, value and range; the gradient is
//                     unchanged.
absl::Status MakeCanonical(int index, const PartSpec& part,
                           PartGradient& gradient);

// The mean of one or more canonical gradients: each row is divided by the
// number of gradients that have it, as TensorFlow's sparse accumulator does.
// `merges` is the order of the sum, as MergesOfPresent() returns it; empty: one
// after the other.
SparseGradient MeanOfRows(const PartSpec& part,
                          absl::Span<const PartGradient> gradients,
                          absl::Span<const int> merges = {});

// Checks rows that a caller wants to read.
//
//   kInvalidArgument  an index out of range
absl::Status CheckRows(int index, const PartSpec& part,
                       absl::Span<const int64_t> rows);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_ROW_GRADIENTS_H_
