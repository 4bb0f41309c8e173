#ifndef LOCKSTEP_COMMON_COLLECTIVE_GROUP_VIEW_H_
#define LOCKSTEP_COMMON_COLLECTIVE_GROUP_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// What a member says when it joins a group, to each other member.
struct Greeting {
  int rank = 0;
  // A number of this start of the member, unlike those of its earlier starts.
  uint64_t incarnation = 0;
  int members = 0;
  // What all members must agree on, in words.
  std::string purpose;
};

// The answer to a greeting.
struct GreetingAnswer {
  uint64_t incarnation = 0;
  // False: the member is in a group with an earlier start of the one that
  // greets, and will not take part until it has begun again itself.
  bool joins = false;
};

// GroupView is the knowledge that a member of a group of processes has of the
// others. The
// group is formed, as this member sees it, when every other member has answered
// its greeting. Members that begin again, or leave, do not come back to a group
// that is formed: all have to begin again.
//
// Threads: not thread-safe.
class GroupView {
 public:
  explicit GroupView(Greeting self);

  const Greeting& self() const { return self_; }

  // Another member greets.
  //
  //   kInvalidArgument  no such member, or it has another number of members or
  //                     another purpose; names both
  absl::StatusOr<GreetingAnswer> Hear(const Greeting& other);

  // Another member has answered this one's greeting.
  void Answered(int rank, const GreetingAnswer& answer);

  // Another member leaves; a start of it that is not in the group counts for
  // nothing.
  void HearLeave(int rank, uint64_t incarnation);

  bool formed() const { return Awaited().empty(); }
  // Whether the member's greeting must be given to `rank` once more.
  bool awaits(int rank) const;
  // The members that have not answered.
  std::vector<int> Awaited() const;

  // Checks that a message is of the group that this member is in: from start
  // `incarnation` of `rank`, for start `meant` of this member.
  //
  //   kInvalidArgument  no such member
  //   kAborted          of another start; says of which member
  absl::Status Check(int rank, uint64_t incarnation, uint64_t meant) const;

  // OK while the member takes part.
  //
  //   kAborted  it has left, or begun again
  const absl::Status& gone(int rank) const { return Of(rank).gone; }

  // The incarnation of a member that has greeted or answered.
  uint64_t incarnation(int rank) const { return Of(rank).incarnation; }

  // OK, or why the group cannot be formed: kInvalidArgument as of Hear().
  const absl::Status& refusal() const { return refusal_; }

 private:
  struct Member {
    uint64_t incarnation = 0;  // 0: unknown
    bool answered = false;
    absl::Status gone = absl::OkStatus();
  };
  absl::Status CheckRank(int rank) const;
  const Member& Of(int rank) const {
    return members_[static_cast<size_t>(rank)];
  }

  const Greeting self_;
  std::vector<Member> members_;
  absl::Status refusal_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_GROUP_VIEW_H_
