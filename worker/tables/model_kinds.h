#ifndef LOCKSTEP_WORKER_TABLES_MODEL_KINDS_H_
#define LOCKSTEP_WORKER_TABLES_MODEL_KINDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace lockstep::worker {

// Returns the values of model.kind, with tables or without, in alphabetical
// order.
std::vector<std::string> AllModelKinds();

//   kInvalidArgument  `kind` is none of them; the message lists all and the
//                     nearest one
absl::Status CheckModelKind(const std::string& kind);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TABLES_MODEL_KINDS_H_
