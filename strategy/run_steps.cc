#include "strategy/run_steps.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {

absl::Status StepContext::Output(Cross& cross, const std::string& name,
                                 const PerReplica<Value>& value,
                                 std::optional<ReduceOp> op) {
  if (!op.has_value()) {
    outputs_.last_step.insert_or_assign(name, value);
    return absl::OkStatus();
  }
  Distributed labeled = ToDistributed(value);
  // Else workers that set two outputs of one shape would add one to the other.
  labeled.label = CallOf("Output", name);
  LOCKSTEP_ASSIGN_OR_RETURN(Value reduced, cross.ReduceAlong(*op, labeled, {}));
  outputs_.last_step.insert_or_assign(name, std::move(reduced));
  return absl::OkStatus();
}

absl::Status StepContext::Output(Replica& replica, const std::string& name,
                                 const Value& mine, ReduceOp op) {
  return replica.Merge(
      [&](Cross& cross, const PerReplica<std::string>& calls,
          const PerReplica<Value>& all) -> absl::Status {
        LOCKSTEP_RETURN_IF_ERROR(cross.engine_.group().TellIfRefused(
            "Output()", CheckSameCall(calls), {}));
        return Output(cross, name, all, op);
      },
      absl::StrCat("Output(\"", name, "\", ",
                   op == ReduceOp::kSum ? "SUM" : "MEAN", ")"),
      mine);
}

void StepContext::Other(Cross&, const std::string& name, std::any value) {
  outputs_.others.insert_or_assign(name, std::move(value));
}

absl::Status StepContext::Other(Replica& replica, const std::string& name,
                                std::any value) {
  return replica.Merge(
      [&](Cross&, const PerReplica<std::string>& calls,
          const PerReplica<std::any>& all) -> absl::Status {
        LOCKSTEP_RETURN_IF_ERROR(CheckSameCall(calls));
        outputs_.others.insert_or_assign(name, all.At(0));
        return absl::OkStatus();
      },
      absl::StrCat("Other(\"", name, "\")"), std::move(value));
}

}  // namespace lockstep::strategy
