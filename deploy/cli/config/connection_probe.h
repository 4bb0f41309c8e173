#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_CONNECTION_PROBE_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_CONNECTION_PROBE_H_

#include <string>

#include "absl/time/time.h"
#include "common/cluster/host_port.h"

namespace lockstep::cli {

// The result of one attempt to reach an address.
struct ProbeResult {
  bool reached = false;
  std::string text{};  // "yes", "no such name", "refused", "no answer in 2 s"
};

// Resolves the host's name, opens a TCP connection to the first of its
// addresses that accepts one, and closes it. Resolving takes as long as the
// system's resolver does, each address at most `timeout`.
//
// Threads: safe to call at the same time.
ProbeResult ProbeConnection(const HostPort& address, absl::Duration timeout);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_CONNECTION_PROBE_H_
