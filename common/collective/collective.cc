#include "common/collective/collective.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

// OK if the first leaf has the number of the leaves for each member, and these
// follow it.
absl::Status CheckCounts(const std::vector<Leaf>& parcel, int members) {
  const Value* counts =
      parcel.empty() ? nullptr : std::get_if<Value>(&parcel[0]);
  if (counts != nullptr && counts->type() == ElementType::kInt64 &&
      counts->size() == static_cast<size_t>(members)) {
    size_t left = parcel.size() - 1;
    bool fits = true;
    for (const int64_t count : counts->Elements<int64_t>()) {
      fits = fits && count >= 0 && static_cast<uint64_t>(count) <= left;
      if (fits) left -= static_cast<size_t>(count);
    }
    if (fits && left == 0) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a member sent leaves that Scatter() does not send; all members must "
      "make the same call");
}

}  // namespace

absl::Status CheckScatter(const Collective& group,
                          const std::vector<std::vector<Leaf>>& for_member) {
  if (for_member.size() == static_cast<size_t>(group.members())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there are parcels for ", for_member.size(),
                   " members, but the group has ", group.members()));
}

absl::Status WithholdMisfits(std::string& description,
                             std::vector<Leaf>& leaves) {
  for (const Leaf& leaf : leaves) {
    absl::Status fit = CheckLeaf(leaf);
    if (fit.ok()) continue;
    absl::StrAppend(&description, ", but ", fit.message());
    leaves.clear();
    return fit;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Parcel>> Collective::Scatter(
    const std::string& description, std::vector<std::vector<Leaf>> for_member) {
  LOCKSTEP_RETURN_IF_ERROR(CheckScatter(*this, for_member));
  // The first leaf has the number of leaves for each member.
  std::vector<int64_t> counts;
  std::vector<Leaf> all(1);
  for (std::vector<Leaf>& leaves : for_member) {
    counts.push_back(static_cast<int64_t>(leaves.size()));
    for (Leaf& leaf : leaves) all.push_back(std::move(leaf));
  }
  all[0] = Value::Of(ElementType::kInt64, {members()}, counts);
  // Another description than that of an Exchange(), whose leaves have no
  // counts.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> parcels,
      Exchange(absl::StrCat("scatter: ", description), std::move(all)));
  std::vector<Parcel> mine;
  for (const Parcel& parcel : parcels) {
    LOCKSTEP_RETURN_IF_ERROR(CheckCounts(*parcel, members()));
    const auto numbers = std::get<Value>(parcel->front()).Elements<int64_t>();
    auto begin = parcel->begin() + 1;
    for (int r = 0; r < rank(); ++r) begin += numbers[static_cast<size_t>(r)];
    mine.push_back(std::make_shared<const std::vector<Leaf>>(
        begin, begin + numbers[static_cast<size_t>(rank())]));
  }
  return mine;
}

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
  // The other members' leaves would be sent in vain.
  if (group.rank() != root) mine.clear();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> parcels,
      group.Exchange(absl::StrCat("broadcast from rank ", root),
                     std::move(mine)));
  return *parcels[static_cast<size_t>(root)];
}

}  // namespace lockstep
