#include "chief/operators/share_check.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

absl::Status CheckShare(const TaskId& member, const std::vector<int>& told,
                        const std::vector<int>& in_effect) {
  if (told.empty() || told == in_effect) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(member.ToString(), " has a share of the data among ",
                   told.size(), " workers, but the job has ", in_effect.size(),
                   " now, or others; register with a new incarnation"));
}

}  // namespace lockstep::chief
