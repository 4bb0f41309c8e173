#ifndef LOCKSTEP_SERVER_SHARD_PARTS_PART_GRADIENTS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_PART_GRADIENTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "server/step/engine.h"
#include "server/update/gradient_slices.h"

// The gradients of a part as the terms of a mean.
namespace lockstep::server {

// The gradients that are not absent.
std::vector<PartGradient> Present(absl::Span<const PartGradient> gradients);

// The order in which the gradients that are not absent are added, as
// MergesOfPresent() returns it. Empty: one after the other.
std::vector<int> OrderOf(const JobConfig& job,
                         absl::Span<const PartGradient> gradients);

// The number of passes whose gradients were added, also on a worker before they
// were pushed. Absent gradients count as zeros.
int64_t DivisorOf(const JobConfig& job,
                  absl::Span<const PartGradient> gradients);

// Borrows: the gradients.
std::vector<GradientSlices> SlicesOf(absl::Span<const PartGradient> gradients);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_PART_GRADIENTS_H_
