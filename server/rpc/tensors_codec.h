#ifndef LOCKSTEP_SERVER_RPC_TENSORS_CODEC_H_
#define LOCKSTEP_SERVER_RPC_TENSORS_CODEC_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/wire/tensor_message.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/v1/shard_control.pb.h"
#include "server/shard/shard.h"

namespace lockstep::server {

// The largest answer with tensors, so that a small request cannot make the
// server allocate much. Callers ask for batches that are far smaller.
inline constexpr size_t kLargestAnswer = size_t{256} << 20;

// Overwrites values or slots of a shard with a checkpoint's.
//
//   kInvalidArgument  a selector that names no such tensor, or a payload of
//                     another length
//   and the errors of ShardState::Write() and WriteRows()
absl::Status WriteTensors(const v1::WritePartsHeader& header,
                          const TensorPayload& payload, Shard& shard);

// Returns the answer with the tensors, or the keys of rows, of the shard's
// snapshot that `selector` names.
//
//   kInvalidArgument     a selector that names no such tensor, or more bytes
//                        than kLargestAnswer
//   kFailedPrecondition  there is no snapshot
absl::StatusOr<grpc::ByteBuffer> ReadTensors(const v1::TensorSelector& selector,
                                             const Shard& shard);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_TENSORS_CODEC_H_
