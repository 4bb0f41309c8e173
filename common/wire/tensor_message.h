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

// TensorPayload is the tensor bytes of a received message, still in the slices
// in which gRPC received them: nothing is copied.
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

// Reads a message of the form { header = 1; bytes payload = 2; } that came as
// raw bytes, as sent by EncodeTensorMessage or by any generated code. A missing
// header is an empty one, a missing payload has no bytes.
//
// A header may be as long as the message: it names the rows that the payload
// has of a table, ten bytes for each at most. Nothing is allocated for bytes
// that a length promises, only for what has come.
//
//   kInvalidArgument  not such a message: says at which byte and why
absl::Status DecodeTensorMessage(const grpc::ByteBuffer& buffer,
                                 google::protobuf::MessageLite& header,
                                 TensorPayload& payload);

// Writes such a message; the payload's slices are referenced, not copied.
grpc::ByteBuffer EncodeTensorMessage(
    const google::protobuf::MessageLite& header,
    absl::Span<const grpc::Slice> payload);

// Writes a message that has no payload field, or an empty one.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message);

// Reads a message that is not split into header and payload.
//
//   kInvalidArgument  not such a message
absl::Status DecodeMessage(const grpc::ByteBuffer& buffer,
                           google::protobuf::MessageLite& message);

// A small message's bytes, in one piece.
std::string CopyBytes(const grpc::ByteBuffer& buffer);

// FilledSlice is a slice with memory of its own, to be filled before it is
// sent. `held` is let go of with the memory.
struct FilledSlice {
  explicit FilledSlice(size_t size, std::shared_ptr<void> held = nullptr);
  std::byte* const memory;
  grpc::Slice slice;
};

// A slice that refers to memory which outlives the call it is sent with.
grpc::Slice UnownedSlice(const void* data, size_t size);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_TENSOR_MESSAGE_H_
