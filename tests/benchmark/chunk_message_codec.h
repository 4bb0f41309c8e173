#ifndef LOCKSTEP_TESTS_BENCHMARK_CHUNK_MESSAGE_CODEC_H_
#define LOCKSTEP_TESTS_BENCHMARK_CHUNK_MESSAGE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace lockstep::benchmark {

inline constexpr int64_t kChunkBytes = int64_t{1} << 20;

// ChunkMessage is a worker's complete message with a chunk: without protobuf,
// to have the lowest cost.
struct ChunkMessage {
  struct Header {
    int64_t worker = 0;
    int64_t chunk = 0;
  };
  Header header;
  std::vector<grpc::Slice> payload;  // slices of gRPC's receive buffers
};

inline grpc::ByteBuffer EncodeChunk(ChunkMessage::Header header,
                                    const void* data, size_t size) {
  const grpc::Slice slices[] = {{&header, sizeof(header)},
                                {data, size, grpc::Slice::STATIC_SLICE}};
  return {slices, 2};
}

//   kInvalidArgument  too short
inline absl::StatusOr<ChunkMessage> DecodeChunk(const grpc::ByteBuffer& bytes) {
  ChunkMessage message;
  if (bytes.Length() < sizeof(message.header) ||
      !bytes.Dump(&message.payload).ok()) {
    return absl::InvalidArgumentError("no chunk");
  }
  auto* to = reinterpret_cast<char*>(&message.header);
  size_t left = sizeof(message.header);
  for (grpc::Slice& slice : message.payload) {
    const size_t piece = left < slice.size() ? left : slice.size();
    std::memcpy(to, slice.begin(), piece);
    to += piece;
    left -= piece;
    slice = slice.sub(piece, slice.size());
    if (left == 0) break;
  }
  return message;
}

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CHUNK_MESSAGE_CODEC_H_
