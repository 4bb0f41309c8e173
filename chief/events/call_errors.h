#ifndef LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_
#define LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {

// True if a live server may answer the next call.
inline bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// A server's error with its name in front. kAborted stays unchanged: it is
// about a newer chief, not about the server.
inline absl::Status OfServer(int server, const absl::Status& status) {
  if (status.ok() || absl::IsAborted(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat("ps ", server, ": ", status.message()));
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_
