#ifndef LOCKSTEP_WORKER_REPLICAS_REPLICA_BACKENDS_H_
#define LOCKSTEP_WORKER_REPLICAS_REPLICA_BACKENDS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "worker/compute/backend/compute_backend.h"

namespace lockstep::worker {

// ReplicaBackends are the devices on which the replicas of a worker compute.
//
// Threads: one at a time.
class ReplicaBackends {
 public:
  // `first` is the device that the worker's flags name. Replicas on the CPU
  // share `threads`, or all cores if it is 0; at least one each.
  ReplicaBackends(std::unique_ptr<ComputeBackend> first, int threads);

  // GPUs that this worker may compute on; 0 where `first` is the CPU.
  int gpus() const;

  // Opens the devices for the job's replicas that are not open yet: the devices
  // that the job names, or else consecutive GPUs (or shares of the CPU) from
  // the worker's own device on.
  //
  //   kInvalidArgument  there are fewer GPUs; the message names the field
  //   others            as MakeBackend()
  absl::Status Open(const JobConfig& job);

  // The number of replicas, 1 before Open().
  size_t size() const { return backends_.size(); }
  ComputeBackend& operator[](size_t replica) { return *backends_[replica]; }

 private:
  // Returns the device of each replica, "cpu:N" or "cuda:N".
  std::vector<std::string> DevicesOf(const JobConfig& job) const;

  const int threads_;
  const int gpus_;
  std::vector<std::string> devices_;  // by replica
  std::vector<std::unique_ptr<ComputeBackend>> backends_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_REPLICAS_REPLICA_BACKENDS_H_
