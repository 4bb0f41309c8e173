#include "common/observe/http_request.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

bool IsPlain(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) {
    return absl::ascii_isprint(static_cast<unsigned char>(byte)) ||
           byte == '\t';
  });
}

// Removes ":PORT", but nothing of an IPv6 address in brackets.
std::string WithoutPort(absl::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon != host.npos && (bracket == host.npos || bracket < colon)) {
    host = host.substr(0, colon);
  }
  return absl::AsciiStrToLower(host);
}

}  // namespace

absl::StatusOr<HttpRequest> ParseHttpRequest(absl::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == text.npos) {
    return absl::InvalidArgumentError("the headers have no end");
  }
  // Without the final empty line, so each further line must be a header.
  const std::vector<absl::string_view> lines =
      absl::StrSplit(text.substr(0, end), "\r\n");
  const std::vector<absl::string_view> words =
      absl::StrSplit(lines.front(), ' ');
  if (words.size() != 3 || !IsPlain(lines.front()) || words[0].empty() ||
      !absl::StartsWith(words[1], "/") ||
      !absl::StartsWith(words[2], "HTTP/1.")) {
    return absl::InvalidArgumentError("the first line is not that of HTTP/1");
  }
  HttpRequest request;
  request.method = std::string(words[0]);
  // substr() accepts npos: a path without a query.
  request.path = std::string(words[1].substr(0, words[1].find('?')));
  std::optional<std::string> host;
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == lines[i].npos ||
        !absl::EqualsIgnoreCase(lines[i].substr(0, colon), "host")) {
      continue;
    }
    const absl::string_view value =
        absl::StripAsciiWhitespace(lines[i].substr(colon + 1));
    // With two Host headers, a proxy and this server could disagree on the
    // host.
    if (host.has_value() || !IsPlain(value)) {
      return absl::InvalidArgumentError("Host must be one plain name");
    }
    host = WithoutPort(value);
  }
  request.host = host.value_or("");
  return request;
}

bool IsOwnHost(absl::string_view host, const std::vector<std::string>& names) {
  // Browsers always send Host, so a request without it comes from another
  // program.
  if (host.empty() || host == "localhost") return true;
  const bool brackets =
      absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  const std::string number(brackets ? host.substr(1, host.size() - 2) : host);
  in6_addr address = {};
  // DNS rebinding needs a name: a page loaded from a number is of that very
  // host.
  if (inet_pton(brackets ? AF_INET6 : AF_INET, number.c_str(), &address) == 1) {
    return true;
  }
  return std::find(names.begin(), names.end(), host) != names.end();
}

}  // namespace lockstep
