#ifndef LOCKSTEP_WORKER_LOOP_LOOP_OPTIONS_H_
#define LOCKSTEP_WORKER_LOOP_LOOP_OPTIONS_H_

#include <cstdint>

#include "common/job/job_config.h"
#include "worker/loop/training_loop.h"

namespace lockstep::worker {

// Returns the options that follow from the job that the chief has told
// `worker`, and from the global step at that time.
TrainingLoop::Options LoopOptionsOf(const JobConfig& job, int worker,
                                    int64_t first_step);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_LOOP_OPTIONS_H_
