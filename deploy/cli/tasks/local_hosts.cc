#include "deploy/cli/tasks/local_hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace lockstep::cli {
namespace {

std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  }
  return text;
}

// Returns the canonical spelling of a literal address; empty for a name.
std::string Literal(const std::string& host) {
  in6_addr bytes;
  char text[INET6_ADDRSTRLEN] = {};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, host.c_str(), &bytes) != 1) continue;
    inet_ntop(family, &bytes, text, sizeof(text));
  }
  return text;
}

std::set<std::string> InterfaceAddresses() {
  std::set<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::string text = AddressText(entry->ifa_addr);
    if (!text.empty()) addresses.insert(text);
  }
  freeifaddrs(list);
  return addresses;
}

std::vector<std::string> ResolveBySystem(const std::string& host) {
  std::vector<std::string> addresses;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    addresses.push_back(AddressText(entry->ai_addr));
  }
  freeaddrinfo(list);
  return addresses;
}

std::string Canonical(std::string host) {
  // A dot at the end marks a complete name of DNS: node1. is node1.
  if (!host.empty() && host.back() == '.') host.pop_back();
  return absl::AsciiStrToLower(host);
}

}  // namespace

LocalHosts LocalHosts::OfThisMachine() {
  char name[HOST_NAME_MAX + 1] = {};
  // Without a name only addresses and localhost are this machine.
  gethostname(name, HOST_NAME_MAX);
  return LocalHosts({name, InterfaceAddresses(), ResolveBySystem});
}

LocalHosts::LocalHosts(Machine machine) : machine_(std::move(machine)) {}

bool LocalHosts::Contains(const std::string& host) const {
  const std::string literal = Literal(host);
  if (!literal.empty()) return ContainsAddress(literal);
  const std::string name = Canonical(host);
  if (name.empty()) return false;
  // RFC 6761 reserves these for loopback, so that no resolver is asked.
  if (name == "localhost" || absl::EndsWith(name, ".localhost") ||
      name == Canonical(machine_.host_name)) {
    return true;
  }
  const std::vector<std::string> addresses = machine_.resolve(name);
  return !addresses.empty() && std::all_of(addresses.begin(), addresses.end(),
                                           [this](const std::string& address) {
                                             return ContainsAddress(address);
                                           });
}

bool LocalHosts::Resolves(const std::string& host) const {
  return !Literal(host).empty() || !machine_.resolve(host).empty();
}

bool LocalHosts::ContainsAddress(const std::string& address) const {
  return absl::StartsWith(address, "127.") || address == "::1" ||
         machine_.addresses.contains(address);
}

}  // namespace lockstep::cli
