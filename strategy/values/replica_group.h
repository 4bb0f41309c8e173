#ifndef LOCKSTEP_STRATEGY_VALUES_REPLICA_GROUP_H_
#define LOCKSTEP_STRATEGY_VALUES_REPLICA_GROUP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/collective.h"
#include "common/collective/reduction.h"
#include "strategy/values/distributed.h"
#include "strategy/values/options.h"

namespace lockstep::strategy {

// The operations that a kRing order sums differently under kMirrored: to one
// place in rank order, to all replicas in a ring.
enum class Toward { kPlace, kAll };

// ReplicaGroup reduces and gathers the values of all replicas of all workers.
// Every worker must make the same calls in the same order.
//
// A plain value is one value of each worker. With one worker, its mean is
// itself and its sum is refused if there are several replicas, because the
// intention is unclear; with several workers, it is reduced over the workers.
// The mean of a mirrored value is itself, and its sum is refused; where a
// process has one copy of each variable it is the value of each replica.
//
// Threads: one call at a time.
// Borrows: `workers`, which is null where there is one worker.
class ReplicaGroup {
 public:
  ReplicaGroup(const StrategyOptions& options, Collective* workers)
      : options_(options), workers_(workers) {}

  int local() const { return options_.replicas; }
  int replicas() const { return local() * workers(); }
  int workers() const { return workers_ == nullptr ? 1 : workers_->members(); }
  int worker() const { return workers_ == nullptr ? 0 : workers_->rank(); }
  int first_replica() const { return worker() * local(); }

  // Returns the reduced values in the order of `values`.
  //
  //   kInvalidArgument  the values of the replicas differ in type or shape; a
  //                     sum of a plain or mirrored value (see above); packs of
  //                     several types; int32 (see StrategyOptions)
  //   others            as Collective::Exchange()
  absl::StatusOr<std::vector<Leaf>> Reduce(
      ReduceOp op, Toward toward, absl::Span<const Distributed> values,
      const CommunicationOptions& options = {}) const;

  // Reduces along axes, too. A mean divides by the number of all elements along
  // the axes, so that short batches weigh less. Negative axes count from the
  // end.
  //
  //   kInvalidArgument  also: an axis twice or out of range; slices
  absl::StatusOr<Value> ReduceAlong(ReduceOp op, const Distributed& value,
                                    absl::Span<const int64_t> axes) const;

  // Joins the values along an axis, in the order of the replicas; slices are
  // made dense. A plain value is one part for each worker.
  //
  //   kInvalidArgument  as lockstep::Gather() and ToDense()
  //   others            as Collective::Exchange()
  absl::StatusOr<Leaf> Gather(const Distributed& value, int64_t axis) const;

  // Returns the leaves of all workers, by rank. Errors: as
  // Collective::Exchange().
  absl::StatusOr<std::vector<Parcel>> FromAllWorkers(
      const std::string& description, std::vector<Leaf> mine) const;

  // Returns the value that `make` returns at worker 0; the other workers do not
  // call it.
  //
  //   kInvalidArgument  at the others: worker 0 has failed
  //   others            of `make`; as Collective::Exchange()
  absl::StatusOr<Value> FromFirstWorker(
      const std::function<absl::StatusOr<Value>()>& make) const;

 private:
  bool Rings(Toward toward, ElementType type) const;
  absl::Status Check(ReduceOp op, Toward toward,
                     absl::Span<const Distributed> values) const;
  // The value as it is, where there is nothing to add.
  std::optional<Leaf> Alone(ReduceOp op, const Distributed& value) const;
  // The values of all ranks; `description` must be the same at all workers.
  absl::StatusOr<std::vector<std::vector<Leaf>>> ByRank(
      const std::string& description,
      absl::Span<const Distributed* const> values) const;
  // The result of ReduceInSlices(), where that pays and every sum is in the
  // order of the ranks.
  absl::StatusOr<std::optional<std::vector<Value>>> ReduceSliced(
      ReduceOp op, Toward toward, const std::string& description,
      absl::Span<const Distributed* const> values) const;
  absl::StatusOr<std::vector<Value>> ReduceDense(
      ReduceOp op, Toward toward, absl::Span<const Distributed* const> values,
      std::optional<int64_t> bytes_per_pack) const;
  absl::StatusOr<Slices> ReduceSparse(ReduceOp op,
                                      const Distributed& value) const;

  const StrategyOptions options_;
  Collective* const workers_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_REPLICA_GROUP_H_
