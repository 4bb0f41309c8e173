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
  // Pieces that a thread reads ahead for each replica; 0: none.
  int prefetch = 1;
};

// Makes the data set of a worker's pipeline.
using DatasetFunction =
    std::function<absl::StatusOr<Dataset>(const InputContext&)>;

// DistributedDataset yields one step of a data set at a time: a piece, which is
// a batch, for each replica of this worker. All workers must call Next() for
// each step; it waits for all. The data ends when no worker has a piece; until
// then, a replica without a piece gets a batch of no examples.
//
// Threads: not thread-safe.
// Borrows: the strategy, which must outlive it.
class DistributedDataset {
 public:
  // `like` returns Dataset::Like() of the pieces.
  DistributedDataset(Engine& engine, std::function<StreamOr()> open,
                     std::function<std::optional<Element>()> like,
                     const InputOptions& options, bool static_shapes)
      : engine_(engine),
        open_(std::move(open)),
        like_(std::move(like)),
        options_(options),
        static_shapes_(static_shapes) {}

  // Returns the next step. With a single worker and batches of one size, and
  // under kCentral always, a step that lacks pieces for some replicas counts as
  // the end of the data.
  //
  //   kOutOfRange          the data has ended, for all workers together
  //   kInvalidArgument     a replica has no piece, and the elements cannot be
  //                        divided, so that there is no piece of no examples
  //   kFailedPrecondition  a replica's function has called it: a step is one
  //                        call for all replicas
  //   kAborted             another worker cannot read its data
  //   others               of the data set; as Collective::Exchange()
  absl::StatusOr<PerReplica<Element>> Next();

  // As Next(), but returns nullopt at the end in place of kOutOfRange. Steps
  // that lack pieces are returned, too.
  absl::StatusOr<std::optional<PerReplica<Element>>> NextIfAny();

  // Makes the first step the next one again. All workers must call it.
  void Restart() { stream_ = nullptr; }

 private:
  absl::Status CheckContext() const;
  absl::Status Open();
  // Reads one piece for each local replica, or fewer at the end of the data.
  absl::StatusOr<std::vector<Element>> Pull();
  // Sets empty_, the piece of no examples: from like_(), which is called when a
  // replica first needs one; otherwise from one of `pieces`. If neither gives
  // one, empty_ stays as it is.
  void LearnEmpty(const std::vector<Element>& pieces);
  // True if a local replica needs a piece of no examples.
  bool Lacks(const std::vector<Element>& pieces) const;
  absl::StatusOr<std::optional<PerReplica<Element>>> Step(bool drop_short);

  Engine& engine_;
  const std::function<StreamOr()> open_;
  const std::function<std::optional<Element>()> like_;
  const InputOptions options_;
  const bool static_shapes_;
  std::unique_ptr<ElementStream> stream_;
  Element empty_;  // a piece of no examples; without tensors while unknown
  bool like_asked_ = false;
  bool like_known_ = false;  // empty_ is of like_()
};

// Distributes a data set that all workers pass in: each step is one batch of
// it, which OpenPieces() divides among all replicas.
//
//   kInvalidArgument, kNotFound  as OpenPieces()
//   kUnimplemented               Replication::kPerReplica
absl::StatusOr<DistributedDataset> Distribute(Engine& engine,
                                              const Dataset& dataset,
                                              const InputOptions& options);

// Distributes the data set that `make` returns, whose elements are the pieces.
// Calls `make` once.
//
// Errors: of `make`; as Distribute().
absl::StatusOr<DistributedDataset> DistributeFrom(Engine& engine,
                                                  const DatasetFunction& make,
                                                  const InputOptions& options);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_DISTRIBUTED_DATASET_H_
