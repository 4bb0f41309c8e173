#ifndef LOCKSTEP_COMMON_MEMBERSHIP_UNREACHABLE_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_UNREACHABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Says to a person why a peer at `address` cannot be reached, of what gRPC says
// about it: "the name HOST does not resolve", "nothing listens there", or its
// own words where it says neither. For messages alone: nothing may depend on
// it.
std::string DescribeUnreachable(absl::string_view address,
                                absl::string_view grpc_message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_UNREACHABLE_H_
