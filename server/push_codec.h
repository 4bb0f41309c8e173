#ifndef LOCKSTEP_SERVER_PUSH_CODEC_H_
#define LOCKSTEP_SERVER_PUSH_CODEC_H_

#include "absl/status/statusor.h"
#include "common/grpc_tensor_codec.h"
#include "lockstep/v1/parameter.pb.h"
#include "server/shard/shard.h"
#include "server/step/shard_engine.h"

namespace lockstep {

// Cuts a push's payload into the gradients of its parts. Nothing is copied:
// the gradients share the received slices.
//
//   kInvalidArgument  unknown parts, a payload of another length, or no pass
absl::StatusOr<Push> ToPush(const v1::PushHeader& header,
                            const TensorPayload& payload, const Shard& shard);

grpc::ByteBuffer EncodePushAnswer(const PushAnswer& answer);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PUSH_CODEC_H_
