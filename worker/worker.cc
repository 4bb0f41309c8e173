#include "worker/worker.h"

#include "common/base/status_macros.h"
#include "worker/device/compute_device.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Worker>> Worker::Make(const Cluster& cluster,
                                                     const Options& options,
                                                     const Clock& clock) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ComputeBackend> backend,
      OpenComputeDevice(options.device, options.compute_threads));
  std::unique_ptr<Worker> worker(new Worker(std::make_unique<ModelWorkload>(
      cluster.self().index, std::move(backend), options.data_roots,
      options.compute_threads)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      worker->member_,
      TrainingMember::Make(cluster,
                           {.expected_job = options.expected_job,
                            .gpus = worker->workload_->gpus(),
                            .shared_memory = options.shared_memory,
                            .pollers = options.pollers,
                            .connections = options.connections,
                            .chief_wait = options.chief_wait},
                           *worker->workload_, clock));
  return worker;
}

}  // namespace lockstep::worker
