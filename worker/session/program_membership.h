#ifndef LOCKSTEP_WORKER_SESSION_PROGRAM_MEMBERSHIP_H_
#define LOCKSTEP_WORKER_SESSION_PROGRAM_MEMBERSHIP_H_

#include <memory>

#include "common/membership/chief_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// A membership of a program in its job. Each pass refers to its own membership,
// because the loop may have begun the next membership when the program takes
// the pass.
struct ProgramMembership {
  ChiefClient::Registration registration;
  std::shared_ptr<ParameterMemory> memory;  // of values and gradients
  int turns = 1;                            // see Workload::turns()
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_PROGRAM_MEMBERSHIP_H_
