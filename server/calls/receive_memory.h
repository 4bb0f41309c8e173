#ifndef LOCKSTEP_SERVER_CALLS_RECEIVE_MEMORY_H_
#define LOCKSTEP_SERVER_CALLS_RECEIVE_MEMORY_H_

#include <cstddef>
#include <vector>

#include "common/job/job_config.h"
#include "server/state/file/state_layout.h"

namespace lockstep::server {

// Returns the number of bytes that this server needs for messages of a job's
// workers and chief while they are received and held: twice the workers'
// windows of chunks, the gradients of a step if a worker may push several for
// it, and 256 MiB for everything else. A chunk of a table is as large as its
// part, but at most 256 MiB. An elastic job counts as one of
// RunSettings::kMaxWorkers workers.
//
// `job` must be filled in: total_num_replicas is not 0.
size_t ReceiveMemory(const JobConfig& job, const std::vector<PartSpec>& parts);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_RECEIVE_MEMORY_H_
