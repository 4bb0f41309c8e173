#ifndef LOCKSTEP_WORKER_CLIENT_ROW_CODEC_H_
#define LOCKSTEP_WORKER_CLIENT_ROW_CODEC_H_

#include "absl/status/status.h"
#include "common/numeric/dtype.h"
#include "common/plan/plan.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.pb.h"
#include "worker/client/row_route.h"
#include "worker/memory/parameter_memory.h"

// Rows of tables between the worker's memory and messages.
namespace lockstep {

// Names rows of a part, in order.
void AddRows(const RoutedRows& routed, v1::RowIds& ids);

// The gradients of the rows, one after the other; as kBFloat16, which is for
// float32 tables, rounded.
grpc::Slice RowGradients(const PlannedPart& part, const RoutedRows& routed,
                         const ParameterMemory& memory, GradientType type);

// Puts the values of the rows, one after the other in `payload`, into memory.
//
//   kInternal  not as many bytes as they have; memory is as it was
absl::Status StoreRows(const TensorPayload& payload, const PlannedPart& part,
                       const RoutedRows& routed, ParameterMemory& memory);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CLIENT_ROW_CODEC_H_
