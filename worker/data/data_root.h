#ifndef LOCKSTEP_WORKER_DATA_DATA_ROOT_H_
#define LOCKSTEP_WORKER_DATA_DATA_ROOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/job_config.h"

namespace lockstep::worker {

// Which files a job may name: those below one of some directories. The chief
// sends the job, so that without such a limit a process that poses as the chief
// has a worker read any file.

// Checks the files that a worker reads, or those of an evaluator: its test set
// and the directory of checkpoints. Symbolic links are followed, on both sides.
// Without directories, every file may be named.
//
//   kPermissionDenied  names the field, the path and the directories
absl::Status CheckWorkerFiles(const JobConfig& job,
                              const std::vector<std::string>& roots);
absl::Status CheckEvaluatorFiles(const JobConfig& job,
                                 const std::vector<std::string>& roots);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATA_ROOT_H_
