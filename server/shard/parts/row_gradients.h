#ifndef LOCKSTEP_SERVER_SHARD_PARTS_ROW_GRADIENTS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_ROW_GRADIENTS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/state/file/state_layout.h"
#include "server/step/engine.h"
#include "server/step/gradient.h"

// Gradients of some rows of a part that is a table, as strict mode takes them.
namespace lockstep {

// Checks a gradient of the table's `part` and makes it canonical: rows in
// ascending order, those of one index added up in order of appearance. One that
// is canonical already is left where it lies, unless it is bfloat16, of which
// the floats that it stands for are made first.
//
//   kInvalidArgument  bfloat16 of a table that is not float32; no rows, or not
//   as many bytes as they need; rows of
//                     another width; a negative index, or one that the part
//                     does not have; elements that are not the variable's.
//                     Names part, field, value and range; nothing has changed.
absl::Status MakeCanonical(int index, const PartSpec& part,
                           PartGradient& gradient);

// The mean of canonical gradients, added in the order given: each row is
// divided by the number of gradients that have it, as TensorFlow's sparse
// accumulator does.
SparseGradient MeanOfRows(const PartSpec& part,
                          absl::Span<const PartGradient> gradients);

// Checks rows that somebody wants to read.
//
//   kInvalidArgument  an index out of range
absl::Status CheckRows(int index, const PartSpec& part,
                       absl::Span<const int64_t> rows);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_ROW_GRADIENTS_H_
