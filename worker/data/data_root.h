#ifndef LOCKSTEP_WORKER_DATA_DATA_ROOT_H_
#define LOCKSTEP_WORKER_DATA_DATA_ROOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep::worker {

// Limits the files that a job may name to some directories. The job comes from
// the chief: without such a limit, a process that poses as the chief could make
// a worker read any file.

// Check the files that a worker reads, or an evaluator: its test set and the
// directory of checkpoints. Symbolic links are followed in paths and
// directories. Without directories, every file is allowed.
//
//   kPermissionDenied  names the field, the path and the directories
absl::Status CheckWorkerFiles(const JobConfig& job,
                              const std::vector<std::string>& roots);
absl::Status CheckEvaluatorFiles(const JobConfig& job,
                                 const std::vector<std::string>& roots);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATA_ROOT_H_
