#ifndef LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_
#define LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {

// Puts the server's name in front of its error. kAborted stays unchanged: it
// reports a newer chief, not a fault of the server.
inline absl::Status OfServer(int server, const absl::Status& status) {
  if (status.ok() || absl::IsAborted(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat("ps ", server, ": ", status.message()));
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_
