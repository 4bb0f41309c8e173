#include "common/process/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/cluster/host_port.h"

namespace lockstep {

std::string ListenAddress(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return address;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found) == 0) {
    freeaddrinfo(found);
    return address;
  }
  return absl::StrCat("[::]:", parsed->port);
}

}  // namespace lockstep
