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

// The destination of a reduction. Under kMirrored with SumOrder::kRing, a sum
// for kPlace is taken in rank order, and one for kAll around a ring.
enum class Toward { kPlace, kAll };

// ReplicaGroup reduces and gathers the values of all replicas of all workers.
// Every worker must make the same calls in the same order.
//
// The form of a value decides its result:
//
//   per replica  the sum or mean over all replicas of all workers
//   plain        one value of each worker. Several workers: the sum or mean
//                over the workers. One worker: the mean is the value; the sum
//                is refused if there are several replicas, because it is
//                unclear whether each has the value
//   mirrored     the mean is the value, the sum is refused. Under kCentral it
//                counts as a value of each replica
//
// Threads: one call at a time.
// Borrows: `workers`, which must be null if there is one worker.
class ReplicaGroup {
 public:
  ReplicaGroup(const StrategyOptions& options, Collective* workers)
      : options_(options), workers_(workers) {}

  int local() const { return options_.replicas; }
  int replicas() const { return local() * workers(); }
  int workers() const { return workers_ == nullptr ? 1 : workers_->members(); }
  int worker() const { return workers_ == nullptr ? 0 : workers_->rank(); }
  int first_replica() const { return worker() * local(); }

  // As Collective::Ended(); OK without other workers.
  absl::Status Ended() const {
    return workers_ == nullptr ? absl::OkStatus() : workers_->Ended();
  }

  // OK if the value has a component for each replica of this worker; one that
  // is not per replica has one for all.
  //
  //   kInvalidArgument  it has fewer or more
  absl::Status CheckComponents(const Distributed& value) const;

  // OK if `values` may be reduced in one call, or for one batch.
  //
  //   kInvalidArgument  int32 (see StrategyOptions::order); only where there
  //                     are no other workers
  absl::Status CheckBatch(absl::Span<const Distributed> values) const;

  // Returns `mine`. If it is an error, first takes part in the call that the
  // other workers make, which then fails at them with kInvalidArgument and this
  // error: else they would wait for this worker. `call` names the call.
  absl::Status TellIfRefused(const std::string& call, absl::Status mine,
                             const CommunicationOptions& options) const;

  // Returns the reduced values in the order of `values`.
  //
  //   kInvalidArgument  the values of the replicas differ in type or shape, or
  //                     only some of them are slices; as CheckComponents(); a
  //                     sum is refused (see above); a pack has values of
  //                     several types; int32 (see StrategyOptions::order);
  //                     workers reduce other values: no worker has a result
  //   others            as Collective::Exchange()
  absl::StatusOr<std::vector<Leaf>> Reduce(
      ReduceOp op, Toward toward, absl::Span<const Distributed> values,
      const CommunicationOptions& options = {}) const;

  // Reduces over the replicas and along `axes`. A mean divides by the number of
  // elements along the axes on all replicas, so short batches weigh less.
  // Negative axes count from the end. The result lacks the axes. Without axes,
  // slices are reduced and made dense, for which they need a dense shape;
  // TensorFlow returns slices.
  //
  //   kInvalidArgument  also: an axis twice or out of range; slices with axes
  absl::StatusOr<Value> ReduceAlong(ReduceOp op, const Distributed& value,
                                    absl::Span<const int64_t> axes) const;

  // Joins the values of all replicas along `axis`, in the order of the
  // replicas; slices are made dense. A plain value gives one part per worker.
  //
  //   kInvalidArgument  as lockstep::Gather(), ToDense(), CheckComponents() and
  //                     CommunicationOptions::Validate()
  //   others            as Collective::Exchange()
  absl::StatusOr<Leaf> Gather(const Distributed& value, int64_t axis,
                              const CommunicationOptions& options = {}) const;

  // Returns the leaves of all workers, by rank. `description` must be equal at
  // all workers. Errors: as Collective::Exchange().
  absl::StatusOr<std::vector<Parcel>> FromAllWorkers(
      const std::string& description, std::vector<Leaf> mine) const;

  // Returns the value that `make` returns at worker 0; the other workers do not
  // call it. `description` must be equal at all workers.
  //
  //   kInvalidArgument  at the others: worker 0 has failed
  //   others            of `make`; as Collective::Exchange()
  absl::StatusOr<Value> FromFirstWorker(
      const std::string& description,
      const std::function<absl::StatusOr<Value>()>& make) const;

 private:
  bool Rings(Toward toward, ElementType type) const;
  absl::Status Check(ReduceOp op, Toward toward,
                     absl::Span<const Distributed> values) const;
  // True if there is nothing to add to the value, whose first component is the
  // result.
  bool IsAlone(ReduceOp op, const Distributed& value) const;
  // Returns result[r][i]: value i of rank r, among the replicas (for plain
  // values: the workers) of the group.
  absl::StatusOr<std::vector<std::vector<Leaf>>> ByRank(
      const std::string& description,
      absl::Span<const Distributed* const> values) const;
  // Returns the result of ReduceInSlices(); absent if that does not pay, or if
  // a sum is to be taken around a ring.
  absl::StatusOr<std::optional<std::vector<Value>>> ReduceSliced(
      ReduceOp op, Toward toward, const std::string& description,
      absl::Span<const Distributed* const> values) const;
  // `batch` adds to the description that workers compare.
  absl::StatusOr<std::vector<Value>> ReduceDense(
      ReduceOp op, Toward toward, absl::Span<const Distributed* const> values,
      std::optional<int64_t> bytes_per_pack, const std::string& batch) const;
  // Each replica's sums along axes, and the elements in each of them.
  struct AlongAxes {
    Distributed sums;
    Distributed counts;
  };
  absl::StatusOr<AlongAxes> SumAlongAxes(ReduceOp op, const Distributed& value,
                                         absl::Span<const int64_t> axes) const;
  absl::StatusOr<Slices> ReduceSparse(ReduceOp op, const Distributed& value,
                                      const std::string& batch) const;

  const StrategyOptions options_;
  Collective* const workers_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_REPLICA_GROUP_H_
