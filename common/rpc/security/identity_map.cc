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

constexpr absl::string_view kJob = "job";

using Line = std::pair<absl::string_view, absl::string_view>;

Line SplitLine(absl::string_view line) {
  // Only at the first '=': roles have none.
  const Line sides = absl::StrSplit(line, absl::MaxSplits('=', 1));
  return {absl::StripAsciiWhitespace(sides.first),
          absl::StripAsciiWhitespace(sides.second)};
}

// Adds one line that is no comment.
absl::Status AddLine(absl::string_view line, absl::string_view job,
                     IdentityMap& map) {
  const auto [name, role] = SplitLine(line);
  if (name == kJob) {
    // A map for another job would give its processes roles in this one.
    if (role == job) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the roles are of job ", Excerpt(role),
                     ", the own certificate is of ", Excerpt(job)));
  }
  if (job.empty()) {
    return absl::InvalidArgumentError(
        "the job is missing; begin with a line job = NAME");
  }
  if (name.empty() || role.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Excerpt(line), " is not NAME = ROLE/INDEX"));
  }
  // A second meaning for a name of Lockstep's own could raise its rights.
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

std::string JobInIdentityMap(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const auto [name, value] = SplitLine(line);
    if (name == kJob) return std::string(value);
  }
  return "";
}

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
