#ifndef LOCKSTEP_SERVER_RPC_PUSH_CODEC_H_
#define LOCKSTEP_SERVER_RPC_PUSH_CODEC_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.pb.h"
#include "server/shard/shard.h"
#include "server/step/engine.h"

namespace lockstep {

// Cuts a push's payload into the gradients of its parts, or finds them in
// shared memory, where they are of the type of the variable. Nothing is copied:
// the gradients share the received slices.
//
//   kInvalidArgument  unknown parts, a payload of another length, a gradient
//                     type that does not exist or that a part does not take, or
//                     no pass; bytes behind a shared push
//   kNotFound         the worker shares no memory with this process
absl::StatusOr<Push> ToPush(const v1::PushHeader& header,
                            const TensorPayload& payload, const Shard& shard);

// `shared`: values are named, not sent, and need not stay. `keep` as below.
grpc::ByteBuffer EncodePushAnswer(PushAnswer answer, bool shared = false,
                                  std::shared_ptr<const void> keep = nullptr);

// Puts lent values behind a header. Large ones are referenced until they have
// been sent; small ones are gathered in a copy, which costs less than a slice.
// `keep` is let go with the last that is referenced.
grpc::ByteBuffer EncodeValues(const google::protobuf::MessageLite& header,
                              std::vector<LentBytes> values,
                              std::shared_ptr<const void> keep = nullptr);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_PUSH_CODEC_H_
