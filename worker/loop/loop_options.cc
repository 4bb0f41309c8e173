#include "worker/loop/loop_options.h"

namespace lockstep::worker {

TrainingLoop::Options LoopOptionsOf(const JobConfig& job, int worker,
                                    int64_t first_step) {
  TrainingLoop::Options options;
  options.mode = job.mode;
  options.replicas_to_aggregate = job.replicas_to_aggregate;
  options.total_num_replicas = job.total_num_replicas;
  options.worker = worker;
  options.first_step = first_step;
  options.numbers = job.micro_batches_per_step;
  options.train_steps = job.train_steps;
  return options;
}

}  // namespace lockstep::worker
