#include "worker/tables/model_kinds.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/flags/nearest_match.h"
#include "worker/models/zoo/registry.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

std::vector<std::string> AllModelKinds() {
  std::vector<std::string> kinds = ModelKinds();
  const std::vector<std::string>& tables = TableModelKinds();
  kinds.insert(kinds.end(), tables.begin(), tables.end());
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

absl::Status CheckModelKind(const std::string& kind) {
  const std::vector<std::string> kinds = AllModelKinds();
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
    return absl::OkStatus();
  }
  std::string message =
      absl::StrCat("model.kind is \"", kind, "\"; it must be one of ",
                   absl::StrJoin(kinds, ", "));
  if (const auto nearest = NearestMatch(kind, kinds); nearest.has_value()) {
    absl::StrAppend(&message, "; did you mean ", *nearest, "?");
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace lockstep::worker
