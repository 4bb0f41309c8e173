#include "common/cluster/host_port.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/cluster/excerpt.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kMaxHostLength = 253;  // of a DNS name
constexpr int kMaxPort = 65535;

absl::Status Malformed(absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(reason, "; write \"host:port\""));
}

bool IsNameChar(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
}

bool IsIpv6Char(char c) {  // '%' starts a zone, as in "fe80::1%eth0"
  return IsNameChar(c) || c == ':' || c == '%';
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
  return absl::OkStatus();
}

absl::Status CheckIpv6(absl::string_view host) {
  if (host.size() > kMaxHostLength || !absl::StrContains(host, ':') ||
      !std::all_of(host.begin(), host.end(), IsIpv6Char)) {
    return Malformed("the brackets hold no IPv6 address");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ParsePort(absl::string_view text) {
  int port = 0;
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
  HostPort canonical{absl::AsciiStrToLower(absl::StripSuffix(host, ".")), port};
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
