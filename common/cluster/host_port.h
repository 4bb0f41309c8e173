#ifndef LOCKSTEP_COMMON_CLUSTER_HOST_PORT_H_
#define LOCKSTEP_COMMON_CLUSTER_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// HostPort is one checked "host:port" of a cluster.
struct HostPort {
  std::string host;  // IPv6 without its brackets; a trailing dot is kept
  int port = 0;      // 0 to 65535; 0 lets the system choose

  // Returns the form that gRPC accepts: "host:port", "[::1]:port".
  std::string ToString() const;

  // Returns one spelling for all spellings of an address: letter case, a
  // trailing dot, zeros in an IPv6 address and IPv4 within IPv6 make no
  // difference, and localhost is 127.0.0.1. Other names are not resolved.
  std::string Canonical() const;
};

// Parses "name:1", "127.0.0.1:1", "[::1]:1", and each of them after "grpc://".
//
//   kInvalidArgument  no port, no number or above 65535; empty host; another
//                     scheme; IPv6 without brackets; four numbers that are no
//                     IPv4 address; a path; spaces and other characters that no
//                     host name has
absl::StatusOr<HostPort> ParseHostPort(absl::string_view address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_HOST_PORT_H_
