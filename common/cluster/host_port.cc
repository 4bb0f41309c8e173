#include "common/cluster/host_port.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

constexpr size_t kMaxHostLength = 253;  // limit of a DNS name
constexpr int kMaxPort = 65535;

absl::Status Malformed(absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(reason, "; write \"host:port\""));
}

bool IsNameChar(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
}

// An IPv6 address and its zone, e.g. "eth0" in "fe80::1%eth0".
struct Ipv6 {
  in6_addr address{};
  std::string zone;  // with its '%'
};

absl::optional<Ipv6> ParseIpv6(absl::string_view host) {
  const size_t percent = std::min(host.find('%'), host.size());
  Ipv6 parsed{.zone = std::string(host.substr(percent))};
  if (parsed.zone.size() == 1 ||
      !std::all_of(parsed.zone.begin() + !parsed.zone.empty(),
                   parsed.zone.end(), IsNameChar) ||
      inet_pton(AF_INET6, std::string(host.substr(0, percent)).c_str(),
                &parsed.address) != 1) {
    return absl::nullopt;
  }
  return parsed;
}

// True for four numbers with dots between them, of any size.
bool LooksLikeIpv4(absl::string_view host) {
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 &&
         std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           return !part.empty() &&
                  std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
         });
}

bool IsIpv4(absl::string_view host) {
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

std::string CanonicalIpv6(const Ipv6& ipv6) {
  char text[INET6_ADDRSTRLEN] = "";
  const in6_addr& address = ipv6.address;
  // "::ffff:10.0.0.1" reaches the same listener as "10.0.0.1".
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, &address, text, sizeof(text));
  }
  return text + ipv6.zone;
}

absl::Status CheckName(absl::string_view host) {
  if (host.empty() || host == ".") return Malformed("the host is empty");
  if (host.size() > kMaxHostLength) {
    return Malformed("the host is longer than 253 characters");
  }
  if (absl::StrContains(host, ':')) {
    return absl::InvalidArgumentError(
        "more than one ':'; write an IPv6 address as \"[::1]:port\"");
  }
  if (!std::all_of(host.begin(), host.end(), IsNameChar)) {
    return Malformed("the host has a character that no host name has");
  }
  // A name of four numbers such as "10.0.0.256" is a mistyped address; without
  // this check it would be looked up as a name.
  if (LooksLikeIpv4(host) && !IsIpv4(host)) {
    return Malformed("the host is no IPv4 address");
  }
  return absl::OkStatus();
}

absl::Status CheckIpv6(absl::string_view host) {
  if (host.size() > kMaxHostLength || !ParseIpv6(host).has_value()) {
    return Malformed("the brackets hold no IPv6 address");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ParsePort(absl::string_view text) {
  int port = 0;
  // Digits alone: SimpleAtoi() also accepts signs and spaces.
  if (text.empty() || text.size() > 5 ||
      !std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &port) || port > kMaxPort) {
    return Malformed(absl::StrCat("the port ", Excerpt(text),
                                  " is not a number from 1 to 65535"));
  }
  return port;
}

absl::StatusOr<HostPort> ParseBracketed(absl::string_view text) {
  const size_t close = text.find("]:");
  if (close == absl::string_view::npos) {
    return Malformed("\"]:port\" is missing after '['");
  }
  const absl::string_view host = text.substr(1, close - 1);
  LOCKSTEP_RETURN_IF_ERROR(CheckIpv6(host));
  LOCKSTEP_ASSIGN_OR_RETURN(int port, ParsePort(text.substr(close + 2)));
  return HostPort{std::string(host), port};
}

absl::StatusOr<HostPort> ParseNamed(absl::string_view text) {
  // The last colon: CheckName() then explains an IPv6 address without brackets.
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Malformed("the port is missing");
  LOCKSTEP_RETURN_IF_ERROR(CheckName(text.substr(0, colon)));
  LOCKSTEP_ASSIGN_OR_RETURN(int port, ParsePort(text.substr(colon + 1)));
  return HostPort{std::string(text.substr(0, colon)), port};
}

}  // namespace

std::string HostPort::ToString() const {
  if (absl::StrContains(host, ':')) {
    return absl::StrCat("[", host, "]:", port);
  }
  return absl::StrCat(host, ":", port);
}

std::string HostPort::Canonical() const {
  // DNS ignores case, and a final dot only marks a name as complete.
  HostPort canonical{absl::AsciiStrToLower(absl::StripSuffix(host, ".")), port};
  const absl::optional<Ipv6> ipv6 = ParseIpv6(canonical.host);
  if (ipv6.has_value()) canonical.host = CanonicalIpv6(*ipv6);
  if (canonical.host == "localhost") canonical.host = "127.0.0.1";
  return canonical.ToString();
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view address) {
  absl::ConsumePrefix(&address, "grpc://");
  if (absl::StrContains(address, "://")) {
    return Malformed("only the scheme \"grpc://\" is known");
  }
  if (absl::StartsWith(address, "[")) return ParseBracketed(address);
  return ParseNamed(address);
}

}  // namespace lockstep
