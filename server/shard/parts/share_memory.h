#ifndef LOCKSTEP_SERVER_SHARD_PARTS_SHARE_MEMORY_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_SHARE_MEMORY_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "server/state/file/state_layout.h"

namespace lockstep::server {

// Checks that a server with `memory` bytes can hold the gradients of all
// micro-batches of a shared step: each may have to wait for the one with the
// lowest number.
// Gradients of tables are not counted, since they have only the rows of a
// micro-batch. OK if work is not shared.
//
//   kInvalidArgument  names micro_batches_per_step, the bytes and the fix
absl::Status CheckSharesFit(const JobConfig& job,
                            const std::vector<PartSpec>& parts, size_t memory);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_SHARE_MEMORY_H_
