#ifndef LOCKSTEP_WORKER_REPLICAS_REPLICATED_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_REPLICAS_REPLICATED_GRADIENT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/gradient_source.h"
#include "worker/memory/parameter_memory.h"
#include "worker/replicas/replica_crew.h"

namespace lockstep::worker {

// ReplicatedGradientSource computes the batches of several replicas at the same
// time, clips the gradients of each, and writes the mean: the sum in the order
// of the replicas, divided once, as servers do with the gradients of as many
// workers. A gradient is reported when all replicas have it, while they go on.
//
// The result has the mean of the losses, and the sums of the counts.
//
// Threads: not thread-safe. The replicas compute in threads of their own, and
//          the pass is called in the caller's.
// Borrows: the memory of the mean.
class ReplicatedGradientSource final : public GradientSource {
 public:
  struct Replica {
    std::unique_ptr<GradientSource> source;
    // The memory in which the source writes its gradients. Its values must be
    // those of the memory of the mean.
    std::unique_ptr<ParameterMemory> memory;
  };

  // There must be at least one replica, and all must have the same model,
  // without tables. `clipped` is by variable: the other gradients are not
  // clipped and add nothing to a norm.
  ReplicatedGradientSource(std::vector<Replica> replicas,
                           const ClippingConfig& clipping,
                           const ParameterMemory& mean,
                           const std::vector<bool>& clipped);

  bool MayBeginEarly() const override;
  void PrepareEarly(const PassId& pass) override;
  absl::Status Prepare(const PassId& pass, int64_t index) override;
  absl::Status Begin(int64_t index, GradientPass& pass) override;
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override;

 private:
  class ReplicaPass;

  // Called in the caller's thread alone, so that they need no lock.
  absl::Status NeedValues(size_t first, size_t count, GradientPass& pass);
  void Ready(size_t variable, GradientPass& pass);

  std::vector<Replica> replicas_;
  const ParameterMemory& mean_;
  std::vector<std::unique_ptr<GradientClipper>> clippers_;  // by replica
  std::vector<bool> has_value_;  // of the pass; by variable
  std::vector<size_t> ready_;    // replicas that have the gradient
  ReplicaCrew crew_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_REPLICAS_REPLICATED_GRADIENT_SOURCE_H_
