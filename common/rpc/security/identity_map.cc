#include "common/rpc/security/identity_map.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

// Adds one line that is no comment.
absl::Status AddLine(absl::string_view line, absl::string_view job,
                     IdentityMap& map) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(line, absl::MaxSplits('=', 1));
  const absl::string_view name = absl::StripAsciiWhitespace(sides.first);
  const absl::string_view role = absl::StripAsciiWhitespace(sides.second);
  if (name.empty() || role.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Excerpt(line), " is not NAME = ROLE/INDEX"));
  }
  if (absl::StartsWith(name, "lockstep:") || ParseCertificateName(name).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Excerpt(name), " has a meaning already; remove the line"));
  }
  absl::StatusOr<CertificateName> meaning = ParseRolePath(role, job);
  if (!meaning.ok()) return meaning.status();
  if (!map.emplace(std::string(name), *std::move(meaning)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat(Excerpt(name), " is there twice"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<IdentityMap> ParseIdentityMap(absl::string_view text,
                                             absl::string_view source,
                                             absl::string_view job) {
  if (text.size() > kLargestIdentityMap) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, " has more than ", kLargestIdentityMap, " bytes"));
  }
  IdentityMap map;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const absl::Status added = AddLine(line, job, map);
    if (!added.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ":", number, ": ", added.message()));
    }
  }
  return map;
}

}  // namespace lockstep
