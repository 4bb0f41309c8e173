#include "common/process/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/cluster/host_port.h"

namespace lockstep {
namespace {

constexpr uint32_t kLoopbackNetwork = 127;  // of 127.0.0.0/8

bool IsLoopbackAddress(const sockaddr& address) {
  const auto is_v4 = [](uint32_t network_order) {
    return ntohl(network_order) >> 24 == kLoopbackNetwork;
  };
  if (address.sa_family == AF_INET) {
    return is_v4(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return true;
  return IN6_IS_ADDR_V4MAPPED(&v6) && is_v4(v6.s6_addr32[3]);
}

}  // namespace

std::string ListenAddress(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  // The server reports what is wrong with it.
  if (!parsed.ok()) return address;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found) == 0) {
    freeaddrinfo(found);
    return address;
  }
  // All addresses, of IPv4 too: peers will find this machine by the name when
  // it resolves.
  return absl::StrCat("[::]:", parsed->port);
}

bool IsLoopback(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return false;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  bool all = true;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    all = all && IsLoopbackAddress(*next->ai_addr);
  }
  freeaddrinfo(found);
  return all;
}

}  // namespace lockstep
