#ifndef LOCKSTEP_WORKER_CLIENT_CHUNK_MESSAGES_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNK_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/numeric/dtype.h"
#include "common/plan/plan.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.pb.h"
#include "worker/client/chunks/chunk_plan.h"
#include "worker/client/chunks/row_route.h"
#include "worker/memory/parameter_memory.h"

// Converts chunks and rows of tables from the worker's memory to messages and
// back. Private to worker/client and a benchmark.
namespace lockstep::worker {

// Copies the values of a chunk that is no part of a table into memory.
// `payload` must have chunk.size bytes.
void StoreChunk(const TensorPayload& payload, const Chunk& chunk,
                const ParameterMemory& memory);

// Adds to `header` the parts of a chunk whose variables have no gradient.
// `absent` has one byte per variable; any value but 0 means that.
void AddAbsent(const Chunk& chunk, absl::Span<const uint8_t> absent,
               v1::PushHeader& header);

// Returns the gradients of a chunk that is no part of a table, without the
// absent ones. The slices refer to `memory`, which must not change while they
// are sent. With kBFloat16, for which all variables must be float32, the result
// is one rounded copy instead.
std::vector<grpc::Slice> ChunkGradients(const Chunk& chunk,
                                        absl::Span<const uint8_t> absent,
                                        const ParameterMemory& memory,
                                        GradientType type);

// Adds the row numbers (keys, in a growing table) of `routed` to `ids`, in
// order.
void AddRows(const RoutedRows& routed, v1::RowIds& ids);

// If memory has a RowSum for the table, adds the number of summands of each row
// to `ids`.
void AddCounts(const Part& part, const RoutedRows& routed,
               const ParameterMemory& memory, v1::RowIds& ids);

// Returns a copy of the gradients of the rows, one after the other. With
// kBFloat16, for which the table must be float32, the copy is rounded.
grpc::Slice RowGradients(const Part& part, const RoutedRows& routed,
                         const ParameterMemory& memory, GradientType type);

// Copies the values of the rows, one after the other in `payload`, into memory.
//
//   kInternal  `payload` has another size than the rows; memory is unchanged
absl::Status StoreRows(const TensorPayload& payload, const Part& part,
                       const RoutedRows& routed, ParameterMemory& memory);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNK_MESSAGES_H_
