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

// Replica is the context of a function that runs once for each replica: what
// such a function may do is what this class has. Calls that involve the other
// replicas wait for them, so all must make them in the same order; a replica
// that fails or returns instead ends the waits of the others with an error.
//
// Threads: for the thread that runs the replica.
class Replica {
 public:
  // Made by Engine.
  Replica(Engine& engine, Meeting& meeting, size_t local)
      : engine_(engine), meeting_(meeting), local_(local) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // The replica that this thread runs, for code that gets no Replica. Where no
  // strategy runs, it is the only one of the default strategy. Null while the
  // thread acts across replicas.
  static Replica* Current() { return CurrentReplica(); }

  int id() const;  // among the replicas of all workers, from 0
  int count() const;
  size_t local() const { return local_; }  // among those of this worker
  const std::string& device() const;
  bool IsOfDefaultStrategy() const;

  // Returns the replica's own copy.
  //
  //   kInvalidArgument  the variable is another strategy's
  absl::StatusOr<Value> Read(const Variable& variable) const;

  // Returns the value that Cross::Read() has, of a kOnRead variable; all
  // replicas must call it. Errors: as Cross::Read() and Merge().
  absl::StatusOr<Value> ReadAggregated(const Variable& variable);

  // Write `value` as the variable's aggregation says. A kOnRead variable, and
  // one without aggregation: the replica's own copy alone. kSum, kMean: the
  // reduced values of all replicas. kOnlyFirstReplica: that of this worker's
  // first replica.
  //
  //   kInvalidArgument  the variable is another strategy's, or of another type
  //                     or shape; no aggregation under kCentral
  //   others            as Merge() and the reduction
  absl::Status Assign(const Variable& variable, const Value& value);
  absl::Status AssignAdd(const Variable& variable, const Value& value);
  absl::Status AssignSub(const Variable& variable, const Value& value);

  // Writes rows. kSum, kMean: the rows of all replicas, one after the other;
  // others as Assign(). Where the process has one copy: each replica's rows in
  // turn.
  //
  //   kUnimplemented  a kOnRead variable; kMin, kMax and kUpdate with kSum or
  //                   kMean
  //   others          as Assign() and ApplyScatter()
  absl::Status Scatter(ScatterOp op, const Variable& variable,
                       const Slices& rows);

  // Returns the sum or mean of the replicas' values, to each of them.
  //
  // Errors: as Merge() and ReplicaGroup::Reduce().
  absl::StatusOr<Value> AllReduce(ReduceOp op, const Value& value,
                                  const CommunicationOptions& options = {});
  absl::StatusOr<std::vector<Leaf>> AllReduce(
      ReduceOp op, std::vector<Leaf> values,
      const CommunicationOptions& options = {});

  // Returns the replicas' values joined along an axis.
  //
  // Errors: as Merge() and ReplicaGroup::Gather().
  absl::StatusOr<Value> AllGather(const Value& value, int64_t axis);

  // Creates a variable, once for all replicas, which must all ask for the same
  // name. Errors: as Merge() and Cross::Create().
  absl::StatusOr<Variable> Create(const VariableOptions& options);

  // Waits until all replicas of this worker have come here, and calls
  //
  //   fn(Cross&, const PerReplica<A>&...)
  //
  // once, with what each has brought. Returns to each replica its component of
  // the result, or the result.
  //
  //   kAborted             another replica has failed
  //   kFailedPrecondition  another replica has returned, or waits in another
  //                        call; this is not the replica of the thread
  //   others               of `fn`
  template <class F, class... A>
  requires std::is_invocable_v < F&, Cross&, const PerReplica<A>
  &... > auto Merge(F fn, A... mine);

  // Updates a variable as Cross::Update() does, with the replicas' arguments:
  // copy i with those of replica i. Returns the result of the own copy.
  template <class F, class... A>
  auto Update(const Variable& variable, F fn, A... mine);

 private:
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
          of(r).part = Part::Take(result, r);
        }
      });
  if (!met.ok()) return typename Part::Type(std::move(met));
  return *std::move(desk.part);
}

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_REPLICA_H_
