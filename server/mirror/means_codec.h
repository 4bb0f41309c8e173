#ifndef LOCKSTEP_SERVER_MIRROR_MEANS_CODEC_H_
#define LOCKSTEP_SERVER_MIRROR_MEANS_CODEC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/state/file/state_layout.h"
#include "server/step/engine.h"

namespace lockstep::server {

// Encodes lent means of parts from `first_part` on as the answer of FetchMeans.
grpc::ByteBuffer EncodeMeans(int first_part, std::vector<PartGradient> means);

// Reads the answer: the means of `num_parts` of `parts`. They share the
// received slices.
//
//   kInvalidArgument  no such message; absent parts that were not asked for, or
//                     that do not ascend; a payload of another length
absl::StatusOr<std::vector<PartGradient>> DecodeMeans(
    const grpc::ByteBuffer& answer, absl::Span<const PartSpec> parts,
    int first_part, int num_parts);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_MEANS_CODEC_H_
