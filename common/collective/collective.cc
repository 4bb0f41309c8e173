#include "common/collective/collective.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {

absl::Status Barrier(Collective& group) {
  return group.Exchange("barrier", {}).status();
}

absl::StatusOr<std::vector<Leaf>> Broadcast(Collective& group, int root,
                                            std::vector<Leaf> mine) {
  if (root < 0 || root >= group.members()) {
    return absl::InvalidArgumentError(
        absl::StrCat("root is ", root, ", but must be at least 0 and below ",
                     group.members(), ", the members of the group"));
  }
  if (group.rank() != root) mine.clear();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> parcels,
      group.Exchange(absl::StrCat("broadcast from rank ", root),
                     std::move(mine)));
  return *parcels[static_cast<size_t>(root)];
}

}  // namespace lockstep
