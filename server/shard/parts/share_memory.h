#ifndef LOCKSTEP_SERVER_SHARD_PARTS_SHARE_MEMORY_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_SHARE_MEMORY_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "server/state/file/state_layout.h"

namespace lockstep::server {

// Checks that a server with `memory` bytes can hold all gradients of a shared
// step: each may have to wait for the gradient with the lowest number. Does not
// count gradients of tables, which have only the rows of a micro-batch. Also
// checks that workers may add up micro-batches if the job demands it: the
// servers' sum of bfloat16 would have other bits. OK if work is not shared.
//
//   kInvalidArgument  names micro_batches_per_step, the bytes and the fix; or
//                     micro_batches_per_push and the reason
absl::Status CheckSharesFit(const JobConfig& job,
                            const std::vector<PartSpec>& parts, size_t memory);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_SHARE_MEMORY_H_
