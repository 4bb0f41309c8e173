#ifndef LOCKSTEP_SERVER_SHARD_PARTS_RING_MEANS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_RING_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/job/variable_settings.h"
#include "common/plan/variable_spec.h"
#include "server/state/file/state_layout.h"
#include "server/step/engine.h"
#include "server/update/mean_norm.h"

namespace lockstep::server {

// The place of a variable among the elements that one ring adds up.
//
// Units: elements.
struct RingPlace {
  int64_t offset = 0;    // of the variable's first element
  int64_t elements = 0;  // of all variables of the ring
};

// Returns the places by variable. Variables are joined to packs as by
// ReducePacked(), from the last to the first, and each pack has one ring. A new
// pack begins where the element type changes and, if `bytes_per_pack` is above
// 0, when the current pack has more bytes than that. -1: each variable has a
// ring of its own. Tables, buffers and untrained variables are in no pack.
// `settings` are those of the variables.
std::vector<RingPlace> RingPlacesOf(
    int64_t bytes_per_pack, const std::vector<VariableSpec>& variables,
    const std::vector<VariableSettings>& settings);

// As StoreMean(), in the order of SumOrder::kRing: the chunks are those of the
// whole ring in which the part's variable has the place `place`, and not those
// of the part. `gradients` are those of all ranks, by rank, at least one of
// them present; absent ones count as zeros. `part` must be no table.
MeanOutcome StoreRingMean(const PartSpec& part, const RingPlace& place,
                          absl::Span<const PartGradient> gradients,
                          absl::Span<std::byte> mean, bool measure);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_RING_MEANS_H_
