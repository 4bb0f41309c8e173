#include "common/collective/group_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

std::string SizeAndPurpose(const Greeting& greeting) {
  return absl::StrCat("rank ", greeting.rank, " is one of ", greeting.members,
                      " members, for \"", greeting.purpose, "\"");
}

}  // namespace

GroupView::GroupView(Greeting self)
    : self_(std::move(self)), members_(static_cast<size_t>(self_.members)) {
  Member& own = members_[static_cast<size_t>(self_.rank)];
  own.incarnation = self_.incarnation;
  // The member need not greet itself.
  own.answered = true;
}

absl::Status GroupView::CheckRank(int rank) const {
  if (rank >= 0 && rank < self_.members && rank != self_.rank) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", rank, " is none of the other members of rank ",
                   self_.rank, "'s group; ranks are 0 to ", self_.members - 1));
}

absl::StatusOr<GreetingAnswer> GroupView::Hear(const Greeting& other) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRank(other.rank));
  if (other.members != self_.members || other.purpose != self_.purpose) {
    absl::Status refusal = absl::InvalidArgumentError(
        absl::StrCat(SizeAndPurpose(self_), "; ", SizeAndPurpose(other),
                     "; all members of a group must be started for the same"));
    // A stray greeting must not end a group that works.
    if (!formed()) refusal_ = refusal;
    return refusal;
  }
  Member& member = members_[static_cast<size_t>(other.rank)];
  const bool same = member.incarnation == other.incarnation;
  if (other.incarnation < member.incarnation) {
    if (!formed()) member.answered = false;
    return GreetingAnswer{self_.incarnation, false};
  }
  if (!same && formed()) {
    if (member.gone.ok()) {
      member.gone = absl::AbortedError(
          absl::StrCat("rank ", other.rank, " has begun again"));
    }
    return GreetingAnswer{self_.incarnation, false};
  }
  // The answer of an earlier start does not hold for this one.
  if (!same) member = Member{.incarnation = other.incarnation};
  return GreetingAnswer{self_.incarnation, true};
}

void GroupView::Answered(int rank, const GreetingAnswer& answer) {
  // An answer that arrives late must not change the starts of a formed group.
  if (!answer.joins || !CheckRank(rank).ok() || formed()) return;
  Member& member = members_[static_cast<size_t>(rank)];
  if (answer.incarnation < member.incarnation &&
      std::exchange(member.doubted, answer.incarnation) != answer.incarnation) {
    return;  // the member is greeted again, as it is awaited
  }
  member.incarnation = answer.incarnation;
  member.answered = true;
  member.pid_space = answer.pid_space;
}

void GroupView::HearLeave(int rank, uint64_t incarnation) {
  if (!CheckRank(rank).ok()) return;
  Member& member = members_[static_cast<size_t>(rank)];
  // The first reason stays.
  if (member.incarnation != incarnation || !member.gone.ok()) return;
  if (!formed()) {
    // The group is not formed yet; it can be, with the member's next start.
    member = Member();
    return;
  }
  member.gone =
      absl::AbortedError(absl::StrCat("rank ", rank, " has left the group"));
}

bool GroupView::Lose(int rank, const absl::Status& why) {
  if (!CheckRank(rank).ok()) return false;
  Member& member = members_[static_cast<size_t>(rank)];
  // The first reason stays.
  if (!member.gone.ok()) return false;
  member.gone = why;
  return true;
}

bool GroupView::awaits(int rank) const { return !Of(rank).answered; }

std::vector<int> GroupView::Awaited() const {
  std::vector<int> awaited;
  for (int r = 0; r < self_.members; ++r) {
    if (awaits(r)) awaited.push_back(r);
  }
  return awaited;
}

absl::Status GroupView::Check(int rank, uint64_t incarnation,
                              uint64_t meant) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckRank(rank));
  if (meant != self_.incarnation) {
    return absl::AbortedError(
        absl::StrCat("rank ", self_.rank, " has begun again"));
  }
  if (incarnation != Of(rank).incarnation) {
    return absl::AbortedError(absl::StrCat(
        "the group of rank ", self_.rank, " has another start of rank ", rank));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
