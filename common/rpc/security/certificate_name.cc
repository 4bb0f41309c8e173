#include "common/rpc/security/certificate_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_spec.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

constexpr absl::string_view kScheme = "lockstep://";
constexpr absl::string_view kSpiffeScheme = "spiffe://";

constexpr absl::string_view kForm =
    "a name is lockstep://JOB/ROLE/INDEX, with ROLE chief, ps, worker or "
    "evaluator and INDEX a number or *, or lockstep://JOB/operator/read or "
    "/steer";

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("name ", Excerpt(text), ": ", why, "; ", kForm));
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '_' || c == '.';
}

bool IsPlain(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), IsNameCharacter);
}

// Accepts only the spelling that StrCat() gives a number: one task has one
// name.
std::optional<int> ParseIndex(absl::string_view text) {
  int index = 0;
  if (!absl::SimpleAtoi(text, &index) || index < 0 ||
      index > ClusterSpec::kMaxTaskIndex || absl::StrCat(index) != text) {
    return std::nullopt;
  }
  return index;
}

absl::StatusOr<CertificateName> Parse(absl::string_view text,
                                      absl::string_view job,
                                      absl::string_view role,
                                      absl::string_view index) {
  LOCKSTEP_RETURN_IF_ERROR(CheckJobInName(job));
  CertificateName name{std::string(job), Role::kReader, std::nullopt};
  if (role == "operator") {
    if (index != "read" && index != "steer") {
      return Wrong(text, "an operator may read or steer");
    }
    name.role = index == "steer" ? Role::kSteerer : Role::kReader;
    return name;
  }
  const std::pair<absl::string_view, Role> kTasks[] = {
      {"chief", Role::kChief},
      {"ps", Role::kPs},
      {"worker", Role::kWorker},
      {"evaluator", Role::kEvaluator}};
  const auto* found =
      std::find_if(std::begin(kTasks), std::end(kTasks),
                   [&](const auto& task) { return task.first == role; });
  if (found == std::end(kTasks)) return Wrong(text, "there is no such role");
  name.role = found->second;
  // No index: any task of the role.
  if (index == "*") return name;
  name.index = ParseIndex(index);
  if (!name.index.has_value()) {
    return Wrong(text, absl::StrCat("the index is neither * nor a number from "
                                    "0 to ",
                                    ClusterSpec::kMaxTaskIndex));
  }
  return name;
}

}  // namespace

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
    case Role::kEvaluator:
      return "evaluator";
    case Role::kReader:
      return "operator/read";
    case Role::kSteerer:
      return "operator/steer";
  }
  return "invalid";
}

Role RoleOf(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return Role::kChief;
    case TaskType::kPs:
      return Role::kPs;
    case TaskType::kEvaluator:
      return Role::kEvaluator;
    case TaskType::kWorker:
      break;
  }
  return Role::kWorker;
}

bool CertificateName::Covers(const TaskId& task) const {
  return role == RoleOf(task.type) &&
         (!index.has_value() || *index == task.index);
}

std::string CertificateName::ToString() const {
  const bool is_operator = role == Role::kReader || role == Role::kSteerer;
  return absl::StrCat(
      is_operator || index.has_value() ? "" : "any ", RoleName(role),
      index.has_value() ? absl::StrCat(" ", *index) : "", " of job ", job);
}

std::string CertificateName::ToUri() const {
  const bool is_operator = role == Role::kReader || role == Role::kSteerer;
  return absl::StrCat(kScheme, job, "/", RoleName(role),
                      is_operator         ? ""
                      : index.has_value() ? absl::StrCat("/", *index)
                                          : "/*");
}

absl::StatusOr<CertificateName> ParseCertificateName(absl::string_view uri) {
  absl::string_view rest = uri;
  const bool spiffe = absl::ConsumePrefix(&rest, kSpiffeScheme);
  if (!spiffe && !absl::ConsumePrefix(&rest, kScheme)) {
    return Wrong(uri, "it does not begin with lockstep:// or spiffe://");
  }
  std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (spiffe) {
    // "lockstep" in the path keeps other SPIFFE ids of the domain from meaning
    // a task.
    if (parts.size() != 5 || !IsPlain(parts[0]) || parts[1] != "lockstep") {
      return Wrong(uri,
                   "a SPIFFE id is spiffe://DOMAIN/lockstep/JOB/ROLE/INDEX, or "
                   "is in the identity map");
    }
    // JOB/ROLE/INDEX remain, as in the other scheme.
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.size() != 3) return Wrong(uri, "it has not three parts");
  return Parse(uri, parts[0], parts[1], parts[2]);
}

absl::StatusOr<CertificateName> ParseRolePath(absl::string_view path,
                                              absl::string_view job) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (parts.size() != 2) return Wrong(path, "it is not ROLE/INDEX");
  return Parse(path, job, parts[0], parts[1]);
}

absl::Status CheckJobInName(absl::string_view job) {
  if (!IsPlain(job) || job.size() > CertificateName::kLongestJob ||
      // URI libraries remove such parts.
      job == "." || job == "..") {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job's name ", Excerpt(job),
        " cannot be part of a certificate's: use 1 to ",
        CertificateName::kLongestJob, " letters, digits, '-', '_' and '.'"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
