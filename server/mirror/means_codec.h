#ifndef LOCKSTEP_SERVER_MIRROR_MEANS_CODEC_H_
#define LOCKSTEP_SERVER_MIRROR_MEANS_CODEC_H_

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/shard/parts/mean_memory.h"
#include "server/state/file/state_layout.h"
#include "server/step/engine.h"

namespace lockstep::server {

// Encodes lent means of parts from `first_part` on as the answer of FetchMeans.
// If `files` (those of the shard's means) are given and all means have a place
// in them, the answer has the places only.
grpc::ByteBuffer EncodeMeans(
    int first_part, std::vector<PartGradient> means,
    const std::optional<MeanMemory::Files>& files = std::nullopt);

// Means in the memory of another server, by its own description. Users must
// check the numbers.
struct SharedMeans {
  struct Mean {
    size_t size = 0;  // bytes; 0: absent
    SharedPlace place = {};
  };
  SharedFile means;
  SharedFile counters;
  std::vector<Mean> parts;
};

// Decodes the answer: the means of `num_parts` of `parts`, which share the
// received slices; or their places.
//
//   kInvalidArgument  no such message; absent parts that were not asked for, or
//                     that do not ascend; a payload of another length; another
//                     number of places or of lists of rows; places of tables
absl::StatusOr<std::variant<std::vector<PartGradient>, SharedMeans>>
DecodeMeans(const grpc::ByteBuffer& answer, absl::Span<const PartSpec> parts,
            int first_part, int num_parts);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_MEANS_CODEC_H_
