#ifndef LOCKSTEP_SERVER_SHARD_PARTS_RING_MEANS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_RING_MEANS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "server/state/file/state_layout.h"
#include "server/step/engine.h"
#include "server/update/mean_norm.h"

namespace lockstep::server {

// As StoreMean(), in the order of SumOrder::kRing: the chunks are those of the
// whole variable, of `variable_elements` elements, and not those of the part.
// `gradients` are those of all ranks, by rank, at least one of them present;
// absent ones count as zeros. `part` must be no table.
MeanOutcome StoreRingMean(const PartSpec& part, int64_t variable_elements,
                          absl::Span<const PartGradient> gradients,
                          absl::Span<std::byte> mean, bool measure);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_RING_MEANS_H_
