#include "worker/session/pass_facts.h"

#include <algorithm>

#include "common/base/fingerprint.h"
#include "common/plan/shares.h"

namespace lockstep::worker {
namespace {

// The passes of a worker, each of which has one of each of its replicas.
int WorkerPassesPerStep(const JobConfig& job, int worker) {
  if (job.mode == SyncMode::kCompatible) return 1;
  if (job.shares_work()) return std::max(job.micro_batches_per_step, 1);
  return SharesOf(worker, job.replicas_to_aggregate, job.total_num_replicas);
}

}  // namespace

PassFacts::PassFacts(const JobConfig& job, int worker, int replicas)
    : seed(job.seed),
      drawing_worker(job.shares_work() ? 0 : worker),
      replicas(replicas),
      passes_per_step(replicas * WorkerPassesPerStep(job, worker)) {}

uint64_t PassFacts::SeedOf(const PassId& pass, int64_t batch) const {
  const int replica = drawing_worker * replicas + ReplicaOf(batch);
  return Fingerprint()
      .Add(seed)
      .Add(static_cast<uint64_t>(replica))
      .Add(static_cast<uint64_t>(pass.step))
      .Add(static_cast<uint64_t>(pass.slot))
      .value();
}

}  // namespace lockstep::worker
