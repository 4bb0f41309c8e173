#ifndef LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_VALUES_REPLAY_H_
#define LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_VALUES_REPLAY_H_

#include <string>

#include "tests/golden/strategy/strategy_workers.h"

// The operations of strategy_values, each for one worker. They throw as the
// functions of trace.h do.
namespace lockstep::golden {

// The operations that have no form in a typed interface: why, or "".
std::string WhyLeftOut(const Json& op, const StrategyWorkers& workers);

// run, merge_call
absl::StatusOr<Results> RunFunction(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> MergeCall(const Json& op, StrategyWorker& worker);

// all_reduce, all_gather, reduce, gather, reduce_to, batch_reduce_to,
// broadcast_to
absl::StatusOr<Results> AllReduce(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> AllGather(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> ReduceToHost(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> GatherAcross(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> ReduceTo(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> BatchReduceTo(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> BroadcastTo(const Json& op, StrategyWorker& worker);

// update, update_in_replica, update_non_slot
absl::StatusOr<Results> Update(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> UpdateInReplica(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> UpdateNonSlot(const Json& op, StrategyWorker& worker);

// places, names, contexts
absl::StatusOr<Results> Devices(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> NonSlotDevices(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> ColocateForeign(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> CreatedInScope(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> ValueContainer(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> Names(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> Contexts(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> ScopeOfAnother(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> LocalResults(const Json& op, StrategyWorker& worker);
absl::StatusOr<Results> DistributeValues(const Json& op,
                                         StrategyWorker& worker);
// The places of a variable.
Json DevicesOf(const strategy::Placement& placement,
               const StrategyWorker& worker);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_VALUES_REPLAY_H_
