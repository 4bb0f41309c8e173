#ifndef LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_
#define LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {

// Whether a server that lives may answer the next call.
inline bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// A server's refusal with its name in front. That of a newer chief stays as it
// is, since it is not the server's.
inline absl::Status OfServer(int server, const absl::Status& status) {
  if (status.ok() || absl::IsAborted(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat("ps ", server, ": ", status.message()));
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_CALL_ERRORS_H_
