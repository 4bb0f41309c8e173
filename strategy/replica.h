#ifndef LOCKSTEP_STRATEGY_REPLICA_H_
#define LOCKSTEP_STRATEGY_REPLICA_H_

#include <optional>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "strategy/engine.h"
#include "strategy/meeting.h"
#include "strategy/results.h"
#include "strategy/values/distributed.h"

namespace lockstep::strategy {

class Cross;

// OK if all local replicas make the same call, by its description.
//
//   kInvalidArgument  names two calls that differ
absl::Status CheckSameCall(const PerReplica<std::string>& calls);

// Replica is the context of a function that runs once for each replica. Calls
// that involve the other replicas wait for them, so all replicas must make them
// in the same order; if one fails or returns instead, the others get an error.
// Where the replicas of one worker differ in a call that waits for the other
// workers, the call fails at those workers, too.
//
// Threads: must be used in the thread that runs the replica, until its function
//          returns.
class Replica {
 public:
  // Made by Engine.
  Replica(Engine& engine, Meeting& meeting, size_t local)
      : engine_(engine), meeting_(meeting), local_(local) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Returns the replica that this thread runs, for code that is not passed one.
  // If no strategy runs, it is that of the default strategy, which may use the
  // variables of all strategies: it reads and writes them as Cross does. It is
  // null while the thread acts across replicas.
  static Replica* Current() { return CurrentReplica(); }

  int id() const;  // among the replicas of all workers, from 0
  int count() const;
  size_t local() const { return local_; }  // among those of this worker
  const std::string& device() const;
  bool IsOfDefaultStrategy() const;

  // Returns this replica's copy of the variable.
  //
  //   kInvalidArgument  the variable is of another strategy
  absl::StatusOr<Value> Read(const Variable& variable) const;

  // Returns the value that Cross::Read() returns: for a kOnRead variable, the
  // aggregate of all copies. All replicas must call it. Errors: as
  // Cross::Read() and Merge().
  absl::StatusOr<Value> ReadAggregated(const Variable& variable);

  // Write `value`, depending on the variable. kOnRead, or no aggregation: to
  // this replica's copy alone. kSum, kMean: the sum or mean of all replicas'
  // values to all copies. kOnlyFirstReplica: the value of this worker's first
  // replica to all its copies.
  //
  //   kInvalidArgument  the variable is of another strategy, or has another
  //                     type or shape than `value`; or it has no aggregation
  //                     under kCentral; or replicas or workers write another
  //                     variable, or in another way
  //   others            as Merge() and the reduction
  absl::Status Assign(const Variable& variable, const Value& value);
  absl::Status AssignAdd(const Variable& variable, const Value& value);
  absl::Status AssignSub(const Variable& variable, const Value& value);

  // Writes rows. kSum, kMean: the rows of all replicas, one after the other, to
  // all copies; other variables as Assign(). Under kCentral: the rows of all
  // replicas, one after the other, whatever the aggregation.
  //
  //   kUnimplemented  a kOnRead variable; kMin, kMax and kUpdate with kSum or
  //                   kMean
  //   others          as Assign() and ApplyScatter()
  absl::Status Scatter(ScatterOp op, const Variable& variable,
                       const Slices& rows);

  // Returns the sum or mean of all replicas' values to each replica.
  //
  //   kInvalidArgument  also: replicas differ in `op` or in the number of
  //                     values; names both
  //   others            as Merge() and ReplicaGroup::Reduce()
  absl::StatusOr<Value> AllReduce(ReduceOp op, const Value& value,
                                  const CommunicationOptions& options = {});
  absl::StatusOr<std::vector<Leaf>> AllReduce(
      ReduceOp op, std::vector<Leaf> values,
      const CommunicationOptions& options = {});

  // Returns all replicas' values, joined along an axis, to each replica.
  //
  //   kInvalidArgument  also: replicas differ in the axis; names both
  //   others            as Merge() and ReplicaGroup::Gather()
  absl::StatusOr<Value> AllGather(const Value& value, int64_t axis,
                                  const CommunicationOptions& options = {});

  // Creates one variable for all replicas, with the initializer and the place
  // of the first. Errors: as Merge() and Cross::Create().
  //
  //   kInvalidArgument  also: replicas differ in the name, synchronization,
  //                     aggregation or trainable; names both
  absl::StatusOr<Variable> Create(const VariableOptions& options);

  // Waits until all replicas of this worker have called Merge(), and calls
  //
  //   fn(Cross&, const PerReplica<A>&...)
  //
  // once, with the arguments `mine` of all. Returns to each replica its
  // component of the result if that is wrapped, otherwise the whole result.
  //
  //   kInvalidArgument     the result is a PerReplica with fewer components
  //   kAborted             another replica has failed
  //   kFailedPrecondition  another replica has returned, or waits in another
  //                        call; or this thread runs another replica or none
  //   others               of `fn`
  template <class F, class... A>
  requires std::is_invocable_v < F&, Cross&, const PerReplica<A>
  &... > auto Merge(F fn, A... mine);

  // Updates a variable as Cross::Update() does: copy i with the arguments of
  // replica i. Returns the result for this replica's copy.
  //
  //   kInvalidArgument  also: the replicas update different variables
  //   others            as Merge() and Cross::Update()
  template <class F, class... A>
  auto Update(const Variable& variable, F fn, A... mine);

 private:
  // A call for a variable, which all replicas must make alike.
  struct Access {
    std::string call;
    Variable variable;
    bool waits = false;         // for the other workers
    absl::Status refused = {};  // why this replica's call cannot be made
  };
  // Where a replica's call waits for the other workers, an error fails theirs.
  //
  //   kInvalidArgument  replicas differ in the call or the variable; names both
  //                     calls
  //   others            the first `refused` that is not OK
  absl::Status CheckAlike(const PerReplica<Access>& accesses) const;

  using Together = absl::FunctionRef<void(Cross&, absl::Span<void* const>)>;
  absl::Status MeetAll(const std::type_info& purpose, void* brought,
                       Together together);
  absl::Status Write(Assignment how, const Variable& variable,
                     const Value& value);

  Engine& engine_;
  Meeting& meeting_;
  const size_t local_;
};

template <class F, class... A>
requires std::is_invocable_v < F&, Cross&, const PerReplica<A>
&... > auto Replica::Merge(F fn, A... mine) {
  using Result = ResultOfCall<F, Cross&, const PerReplica<A>&...>;
  using Part = PartOf<typename Result::Value>;
  struct Desk {
    std::tuple<A...> brought;
    std::optional<typename Part::Type> part;
  };
  Desk desk{{std::move(mine)...}, std::nullopt};
  absl::Status met = MeetAll(
      typeid(Desk), &desk, [&](Cross& cross, absl::Span<void* const> desks) {
        const auto of = [&desks](size_t r) -> Desk& {
          return *static_cast<Desk*>(desks[r]);
        };
        // The values that the replicas have brought in place `I`.
        const auto column = [&]<size_t I>(std::integral_constant<size_t, I>) {
          std::vector<std::tuple_element_t<I, std::tuple<A...>>> values;
          for (size_t r = 0; r < desks.size(); ++r) {
            values.push_back(std::move(std::get<I>(of(r).brought)));
          }
          return PerReplica(std::move(values), engine_.group().first_replica());
        };
        const auto result = [&]<size_t... I>(std::index_sequence<I...>) {
          return Call(fn, cross,
                      column(std::integral_constant<size_t, I>())...);
        }
        (std::index_sequence_for<A...>());
        for (size_t r = 0; r < desks.size(); ++r) {
          of(r).part = Part::Take(result, r, desks.size());
        }
      });
  if (!met.ok()) return typename Part::Type(std::move(met));
  return *std::move(desk.part);
}

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_REPLICA_H_
