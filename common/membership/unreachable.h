#ifndef LOCKSTEP_COMMON_MEMBERSHIP_UNREACHABLE_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_UNREACHABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns the reason, for people, why a peer at `address` cannot be reached,
// given gRPC's message: "the name HOST does not resolve", "nothing listens
// there", or that message itself. No decision may depend on it.
std::string DescribeUnreachable(absl::string_view address,
                                absl::string_view grpc_message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_UNREACHABLE_H_
