#include "common/membership/unreachable.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

std::string DescribeUnreachable(absl::string_view address,
                                absl::string_view grpc_message) {
  // gRPC gives these causes only in its text.
  if (absl::StrContains(grpc_message, "DNS resolution failed")) {
    return absl::StrCat("the name ", address.substr(0, address.rfind(':')),
                        " does not resolve");
  }
  if (absl::StrContains(grpc_message, "Connection refused")) {
    return "nothing listens there";
  }
  return std::string(grpc_message);
}

}  // namespace lockstep
