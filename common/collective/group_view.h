#ifndef LOCKSTEP_COMMON_COLLECTIVE_GROUP_VIEW_H_
#define LOCKSTEP_COMMON_COLLECTIVE_GROUP_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// A member's message to each other member when it joins a group.
struct Greeting {
  int rank = 0;
  // The number of this start of the member; an earlier start has another one.
  uint64_t incarnation = 0;
  int members = 0;
  // A text that must be the same at all members.
  std::string purpose;
};

// The answer to a greeting.
struct GreetingAnswer {
  uint64_t incarnation = 0;
  // False: the member is in a group with an earlier start of the greeting one,
  // and takes part again only after it has been restarted itself.
  bool joins = false;
  // The name of the answering member's pid space if it can read the memory of
  // other processes of its host; else empty.
  std::string pid_space = {};
};

// GroupView is one member's knowledge of the other members of a group of
// processes. From this member's view the group is formed when every other
// member has answered its greeting. A member that is restarted, or leaves,
// cannot come back to a formed group: all members must be restarted.
//
// Threads: not thread-safe.
class GroupView {
 public:
  explicit GroupView(Greeting self);

  const Greeting& self() const { return self_; }

  // Handles another member's greeting and returns the answer. A greeting with a
  // smaller incarnation than the known one was delayed, or its process has been
  // replaced. It does not end a formed group; before the group is formed, the
  // member must be greeted again, because its answer tells which of its starts
  // is running.
  //
  //   kInvalidArgument  no such member, or it has another number of members or
  //                     another purpose; names both
  absl::StatusOr<GreetingAnswer> Hear(const Greeting& other);

  // Handles another member's answer to this one's greeting. If the known start
  // has a larger number the answer may be late: only a second one counts.
  void Answered(int rank, const GreetingAnswer& answer);

  // Handles another member's departure. Has no effect if `incarnation` is a
  // start of it that is not in the group.
  void HearLeave(int rank, uint64_t incarnation);

  // Handles a member of the formed group that does not answer: `why` is its
  // gone() from then on. False if it was gone before.
  bool Lose(int rank, const absl::Status& why);

  bool formed() const { return Awaited().empty(); }
  // True if the greeting must be sent to `rank` again.
  bool awaits(int rank) const;
  // Returns the members that have not answered.
  std::vector<int> Awaited() const;

  // Checks that a message belongs to the group that this member is in: from
  // start `incarnation` of `rank`, for start `meant` of this member.
  //
  //   kInvalidArgument  no such member
  //   kAborted          another start; the message names the member
  absl::Status Check(int rank, uint64_t incarnation, uint64_t meant) const;

  // OK while the member takes part; else the reason.
  //
  //   kAborted  it has left, or begun again
  //   others    of Lose()
  const absl::Status& gone(int rank) const { return Of(rank).gone; }

  // True if the member has answered that it can read memory of this pid space.
  bool reads_memory_of(int rank, const std::string& pid_space) const {
    return !pid_space.empty() && Of(rank).pid_space == pid_space;
  }

  // The incarnation of a member that has greeted or answered.
  uint64_t incarnation(int rank) const { return Of(rank).incarnation; }

  // OK, or the reason why the group cannot be formed: kInvalidArgument as of
  // Hear().
  const absl::Status& refusal() const { return refusal_; }

 private:
  struct Member {
    uint64_t incarnation = 0;  // 0: unknown
    bool answered = false;
    uint64_t doubted = 0;  // a start whose answer may have been late
    std::string pid_space = {};
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
