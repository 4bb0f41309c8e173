#ifndef LOCKSTEP_SERVER_RPC_PUSH_CODEC_H_
#define LOCKSTEP_SERVER_RPC_PUSH_CODEC_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.pb.h"
#include "server/shard/shard.h"
#include "server/step/engine.h"

namespace lockstep::server {

// Cuts a push's payload into the gradients of its parts, or finds them in
// shared memory, where they must have the type of the variable. Copies nothing:
// the gradients share the received slices.
//
//   kInvalidArgument  unknown parts, a payload of another length, a gradient
//                     type that is unknown or that a part does not accept, no
//                     pass, a payload with a push of shared gradients, or
//                     absent parts that are none of the push, that do not
//                     ascend, that name rows, or in compatible mode
//   kNotFound         the worker shares no memory with this process
absl::StatusOr<Push> ToPush(const v1::PushHeader& header,
                            const TensorPayload& payload, const Shard& shard);

// The rows of a table that a header names, and the bytes that they have in the
// payload.
struct NamedRows {
  size_t size = 0;
  GradientRows rows;
};

// Reads the rows of `table`, of `element` bytes an element. Copies them only if
// the payload is long enough for all of them, so that a short message cannot
// allocate much.
//
//   kInvalidArgument  the payload has fewer bytes than the rows
absl::StatusOr<NamedRows> ReadRows(const PartSpec& table, size_t element,
                                   const v1::RowIds& ids, size_t payload_size);

// Cuts a payload into gradients of these sizes, whose sum must be the size of
// the payload. The gradients share the received slices.
//
// Units: bytes.
std::vector<PartGradient> CutIntoGradients(const TensorPayload& payload,
                                           absl::Span<const size_t> sizes);

// Encodes the answer to a push. If `shared`, the answer has the places of
// values in place of their bytes, and need not keep them. `keep` is as in
// EncodeValues().
grpc::ByteBuffer EncodePushAnswer(PushAnswer answer, bool shared = false,
                                  std::shared_ptr<const void> keep = nullptr);

// Encodes lent values behind a header. References large values until they have
// been sent; copies small ones together, which costs less than a slice each.
// The message holds `keep` until the last value has been sent.
grpc::ByteBuffer EncodeValues(const google::protobuf::MessageLite& header,
                              std::vector<LentBytes> values,
                              std::shared_ptr<const void> keep = nullptr);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_PUSH_CODEC_H_
