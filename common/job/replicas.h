// The replicas of a worker: how many they are, and where each computes.

#ifndef LOCKSTEP_COMMON_JOB_REPLICAS_H_
#define LOCKSTEP_COMMON_JOB_REPLICAS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"

namespace lockstep {

// The device of a replica, as a job names it.
struct ReplicaDevice {
  bool is_gpu = false;
  int number = 0;  // of a GPU among those that the worker sees
};

// Reads "cpu:N" or "cuda:N", N in [0, 63]. Errors: kInvalidArgument.
absl::StatusOr<ReplicaDevice> ParseReplicaDevice(const std::string& name);

// Checks `strategy.replicas_per_worker` and `strategy.devices`.
//
//   kInvalidArgument  a number out of range, a name of no device, a device
//                     named twice, two fields that contradict each other, or
//                     more replicas than the kind or the model can have
absl::Status CheckReplicas(const JobConfig& job);

// True if a worker has a replica on each of its GPUs, so that all workers must
// have equally many.
bool HasReplicaOnEachGpu(const JobConfig& job);

// Returns the number of replicas of a worker that computes on `gpus` GPUs, 0
// for one that computes on its CPU. The job must have passed CheckReplicas().
int ReplicasPerWorker(const JobConfig& job, int gpus);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_REPLICAS_H_
