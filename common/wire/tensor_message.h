#ifndef LOCKSTEP_COMMON_WIRE_TENSOR_MESSAGE_H_
#define LOCKSTEP_COMMON_WIRE_TENSOR_MESSAGE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace lockstep {

// TensorPayload holds the tensor bytes of a received message in the slices of
// gRPC, without a copy.
//
// Units: sizes count bytes. Slices start at any address and cut elements
//        anywhere.
// Owns:  a reference to each slice.
struct TensorPayload {
  std::vector<grpc::Slice> slices;
  size_t size = 0;

  // Copies all bytes to `out`, which must have room for `size`.
  void CopyTo(void* out) const;
};

// Parses a message of the form { header = 1; bytes payload = 2; } from raw
// bytes, sent by EncodeTensorMessage or by any generated code. A missing header
// is an empty one; a missing payload has no bytes.
//
// A header may be as long as the message: it names a table's rows in the
// payload, at most ten bytes for each. Memory is allocated only for bytes that
// have arrived, not for a length that the message claims.
//
//   kInvalidArgument  not such a message: says at which byte and why
absl::Status DecodeTensorMessage(const grpc::ByteBuffer& buffer,
                                 google::protobuf::MessageLite& header,
                                 TensorPayload& payload);

// Encodes such a message; references the payload's slices without a copy.
grpc::ByteBuffer EncodeTensorMessage(
    const google::protobuf::MessageLite& header,
    absl::Span<const grpc::Slice> payload);

// Encodes a message that has no payload field, or an empty one.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message);

// Parses a message that is not split into header and payload.
//
//   kInvalidArgument  not such a message
absl::Status DecodeMessage(const grpc::ByteBuffer& buffer,
                           google::protobuf::MessageLite& message);

// Returns a small message's bytes, in one piece.
std::string CopyBytes(const grpc::ByteBuffer& buffer);

// FilledSlice is a slice with memory of its own, to be filled before it is
// sent. `held` is released with the memory.
struct FilledSlice {
  explicit FilledSlice(size_t size, std::shared_ptr<void> held = nullptr);
  std::byte* const memory;
  grpc::Slice slice;
};

// Makes a slice that refers to memory; the memory must outlive the call that
// sends it.
grpc::Slice UnownedSlice(const void* data, size_t size);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_TENSOR_MESSAGE_H_
