#ifndef LOCKSTEP_WORKER_SESSION_SESSION_VARIABLES_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_VARIABLES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/plan/variable_spec.h"
#include "worker/session/session.h"

namespace lockstep::worker {

// Checks the descriptions of a program's variables.
//
//   kInvalidArgument  there is no variable, or one that a program cannot have;
//                     names it and the fix
absl::Status CheckVariables(const std::vector<SessionVariable>& variables);

// As ProgramWorkload takes them: the specs, in which a variable with initial
// values has the initializer kGiven, and the initial values.
std::vector<VariableSpec> SpecsOf(
    const std::vector<SessionVariable>& variables);
std::vector<absl::Span<const std::byte>> InitialOf(
    const std::vector<SessionVariable>& variables);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_VARIABLES_H_
