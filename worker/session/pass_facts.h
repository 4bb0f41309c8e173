#ifndef LOCKSTEP_WORKER_SESSION_PASS_FACTS_H_
#define LOCKSTEP_WORKER_SESSION_PASS_FACTS_H_

#include <cstdint>

#include "common/job/job_config.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::worker {

// The facts of a job that tell one pass of a program from another.
struct PassFacts {
  // `replicas` is the number of replicas of each worker.
  PassFacts(const JobConfig& job, int worker, int replicas);
  PassFacts() = default;

  // The replica of this worker that computes batch `batch`, see
  // Workload::turns().
  int ReplicaOf(int64_t batch) const {
    return static_cast<int>(batch % replicas);
  }

  // The seed for the random numbers of a pass: one for each replica of the job,
  // step and slot. Replica r of worker w has that of worker w x replicas + r of
  // a job whose workers have one each. Any worker may compute a pass of shared
  // work, with the same result, so that all have the same seeds there.
  uint64_t SeedOf(const PassId& pass, int64_t batch) const;

  uint64_t seed = 0;  // of the job
  int drawing_worker = 0;
  int replicas = 1;
  // The most passes that the program may make of one step.
  int passes_per_step = 1;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_PASS_FACTS_H_
