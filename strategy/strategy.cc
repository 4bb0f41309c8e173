#include "strategy/strategy.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::Make(
    const StrategyOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(options.Validate());
  if (options.kind == Kind::kMultiWorkerMirrored) {
    return absl::InvalidArgumentError(
        "kMultiWorkerMirrored needs the group of its workers; call Join(), or "
        "give Make() a group, also if there is a single worker");
  }
  return std::unique_ptr<Strategy>(
      new Strategy(std::make_unique<Engine>(options, nullptr)));
}

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::Make(
    const StrategyOptions& options, std::unique_ptr<Collective> workers) {
  LOCKSTEP_RETURN_IF_ERROR(options.Validate());
  const bool has_group = options.kind == Kind::kMultiWorkerMirrored ||
                         options.kind == Kind::kParameterServer;
  if (!has_group || workers == nullptr) {
    return absl::InvalidArgumentError(
        "a group of workers is for kMultiWorkerMirrored and kParameterServer, "
        "and must be there");
  }
  return std::unique_ptr<Strategy>(
      new Strategy(std::make_unique<Engine>(options, std::move(workers))));
}

absl::StatusOr<std::unique_ptr<Strategy>> Strategy::Join(
    const StrategyOptions& options, const WorkersOptions& workers) {
  LOCKSTEP_RETURN_IF_ERROR(options.Validate());
  const bool served = options.kind == Kind::kParameterServer;
  if (served && !workers.group_beside_servers) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool keeps_outputs, KeepsOutputs(workers));
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Strategy> made, Make(options));
    made->keeps_outputs_ = keeps_outputs;
    return made;
  }
  if (!served && options.kind != Kind::kMultiWorkerMirrored) {
    return Make(options);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<Collective> group,
      JoinWorkers(
          workers,
          absl::StrCat(served ? "kParameterServer" : "kMultiWorkerMirrored",
                       " with ", options.replicas,
                       " replicas in each worker, sums in the order ",
                       options.order == SumOrder::kRing ? "kRing" : "kRank")));
  return Make(options, std::move(group));
}

Strategy& Strategy::Default() {
  // Never destroyed, as the engine that it refers to.
  static auto& strategy = *new Strategy(DefaultEngine());
  return strategy;
}

absl::StatusOr<AtVariable<Value>> Strategy::LocalCopies(
    const Variable& variable) {
  LOCKSTEP_RETURN_IF_ERROR(engine_.variables().CheckOwner(variable));
  return Across([&](Cross&) -> absl::StatusOr<AtVariable<Value>> {
    const VariableStore& store = engine_.variables();
    std::vector<Value> copies;
    for (size_t i = 0; i < store.CountOfCopies(variable); ++i) {
      copies.push_back(store.ReadCopy(variable, i));
    }
    return AtVariable<Value>(variable.placement(), std::move(copies));
  });
}

}  // namespace lockstep::strategy
