#ifndef LOCKSTEP_CHIEF_SERVERS_CALL_DEADLINE_H_
#define LOCKSTEP_CHIEF_SERVERS_CALL_DEADLINE_H_

#include "absl/time/time.h"

namespace lockstep::chief {

// The deadline of the chief's calls to servers: long enough for any live
// server; a dead one is detected by its lease.
inline constexpr absl::Duration kCallDeadline = absl::Seconds(10);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_CALL_DEADLINE_H_
