#ifndef LOCKSTEP_STRATEGY_DISTRIBUTED_DATASET_H_
#define LOCKSTEP_STRATEGY_DISTRIBUTED_DATASET_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/engine.h"
#include "strategy/input/dataset.h"
#include "strategy/input/rebatch.h"
#include "strategy/values/distributed.h"

namespace lockstep::strategy {

enum class Replication { kPerWorker, kPerReplica };

struct InputOptions {
  AutoShardPolicy auto_shard = AutoShardPolicy::kAuto;
  Replication replication = Replication::kPerWorker;
  // Pieces that are read ahead for each replica, in a thread; 0: none.
  int prefetch = 1;
};

// Makes the data set of a worker's pipeline.
using DatasetFunction =
    std::function<absl::StatusOr<Dataset>(const InputContext&)>;

// DistributedDataset yields a step of a data set at a time: a piece for each
// replica of this worker. All workers must ask for each step. A step happens
// while any worker has a piece; a replica without one gets a batch of no
// examples.
//
// Threads:  not thread-safe.
// Outlived: by its strategy.
class DistributedDataset {
 public:
  DistributedDataset(Engine& engine, std::function<StreamOr()> open,
                     const InputOptions& options, bool static_shapes)
      : engine_(engine),
        open_(std::move(open)),
        options_(options),
        static_shapes_(static_shapes) {}

  // The next step. With a single worker and batches of one size, a step that is
  // short of pieces is left out; under kCentral always.
  //
  //   kOutOfRange  the data has ended, for all workers together; so it stays
  //   kAborted     another worker cannot read its data
  //   others       of the data set; as Collective::Exchange()
  absl::StatusOr<PerReplica<Element>> Next();

  // The same, without a value at the end. No step is left out.
  absl::StatusOr<std::optional<PerReplica<Element>>> NextIfAny();

  // The next step is the first one again.
  void Restart() { stream_ = nullptr; }

 private:
  absl::Status Open();
  // Up to one piece for each replica.
  absl::StatusOr<std::vector<Element>> Pull();
  absl::StatusOr<std::optional<PerReplica<Element>>> Step(bool drop_short);

  Engine& engine_;
  const std::function<StreamOr()> open_;
  const InputOptions options_;
  const bool static_shapes_;
  std::unique_ptr<ElementStream> stream_;
  Element empty_;  // a piece without examples, once one has been seen
};

// The data set of all workers: each step is one batch, which is divided among
// all replicas as OpenPieces() says.
//
//   kInvalidArgument, kNotFound  as OpenPieces()
//   kUnimplemented               Replication::kPerReplica
absl::StatusOr<DistributedDataset> Distribute(Engine& engine,
                                              const Dataset& dataset,
                                              const InputOptions& options);

// The data set that `make` returns, as it is: each element is a piece. It is
// called once in each worker.
//
// Errors: of `make`; as Distribute().
absl::StatusOr<DistributedDataset> DistributeFrom(Engine& engine,
                                                  const DatasetFunction& make,
                                                  const InputOptions& options);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_DISTRIBUTED_DATASET_H_
