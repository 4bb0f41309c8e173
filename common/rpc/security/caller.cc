#include "common/rpc/security/caller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

// The number of names that a message quotes.
constexpr size_t kQuoted = 4;

std::string Quote(const NamesInCertificate& names) {
  std::vector<std::string> quoted;
  for (const auto* list : {&names.uris, &names.dns}) {
    for (const std::string& name : *list) {
      if (quoted.size() < kQuoted) quoted.push_back(Excerpt(name));
    }
  }
  return quoted.empty() ? "none" : absl::StrJoin(quoted, ", ");
}

}  // namespace

Caller::Caller(const NamesInCertificate& names, absl::string_view job,
               const IdentityMap& map)
    : checked_(true) {
  bool foreign = false;
  for (const auto* list : {&names.uris, &names.dns}) {
    for (const std::string& name : *list) {
      const auto mapped = map.find(name);
      if (mapped != map.end()) {
        names_.push_back(mapped->second);
        continue;
      }
      // Lockstep's own names are URIs; DNS names count only through the map.
      if (list == &names.dns) continue;
      absl::StatusOr<CertificateName> parsed = ParseCertificateName(name);
      // Names that mean nothing here give no rights, and are no error:
      // certificates may serve other programs too.
      if (!parsed.ok()) continue;
      // A certificate for two jobs would let one job's process into the other.
      foreign = foreign || parsed->job != job;
      names_.push_back(*std::move(parsed));
    }
  }
  // Without names, no call is allowed.
  if (foreign || names_.empty()) {
    names_.clear();
    text_ = absl::StrCat("a process without a role in job ", job,
                         ": the names of its certificate are ", Quote(names));
    return;
  }
  for (const CertificateName& name : names_) roles_ |= Bit(name.role);
  text_ = absl::StrJoin(names_, " and ",
                        [](std::string* out, const CertificateName& name) {
                          absl::StrAppend(out, name.ToString());
                        });
}

absl::Status Caller::CheckSpeaksFor(const TaskId& task) const {
  // Not checked: the process has no certificates.
  if (!checked_) return absl::OkStatus();
  const bool covered = std::any_of(
      names_.begin(), names_.end(),
      [&](const CertificateName& name) { return name.Covers(task); });
  if (covered) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the message says it is from ", task.ToString(),
                   ", its sender's certificate is that of ", text_));
}

}  // namespace lockstep
