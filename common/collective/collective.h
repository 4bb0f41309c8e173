#ifndef LOCKSTEP_COMMON_COLLECTIVE_COLLECTIVE_H_
#define LOCKSTEP_COMMON_COLLECTIVE_COLLECTIVE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/collective/exchange_table.h"

namespace lockstep {

// Collective is one member's interface to a group. All members of a group must
// make the same calls in the same order.
//
// Threads: one call at a time.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int members() const = 0;

  // Sends `mine` to all members and returns the parcels of all, by rank.
  // `description` names the call, and must be the same at all members.
  //
  //   kInvalidArgument   the members made different calls: all get this error,
  //                      with both descriptions
  //   kDeadlineExceeded  members did not come to this or an earlier call in
  //                      time; names them
  //   kAborted           a member has left
  //
  // The first error that ends the group stays: all later calls return it.
  virtual absl::StatusOr<std::vector<Parcel>> Exchange(
      const std::string& description, std::vector<Leaf> mine) = 0;

  // Gives `for_member[r]` to member r, and returns the parcels that all have
  // given to this one, by rank. `for_member` must have an entry for each
  // member. Unless a group has a better way, it is an Exchange() of everything.
  //
  // Errors: as Exchange(); kInvalidArgument also: too few or too many entries
  virtual absl::StatusOr<std::vector<Parcel>> Scatter(
      const std::string& description,
      std::vector<std::vector<Leaf>> for_member);

  // True if Scatter() sends each member its own leaves alone, and not an
  // Exchange() of everything. Equal at all members of a group.
  virtual bool scatters_apart() const { return false; }

  // OK while all members take part, as far as this one knows; else the error
  // that has ended the group, or kAborted with the member that has left it.
  virtual absl::Status Ended() const { return absl::OkStatus(); }

  // Sets how long each call of this member waits for the others from now on,
  // above 0; absent: as long as the group was made for. Members may differ in
  // it. Must not be called during a call.
  virtual void SetTimeout(std::optional<absl::Duration> timeout) {
    timeout_ = timeout;
  }

 protected:
  // The timeout of a call, in a group that was made for `of_group`.
  absl::Duration TimeoutOr(absl::Duration of_group) const {
    return timeout_.value_or(of_group);
  }

 private:
  std::optional<absl::Duration> timeout_;
};

// While it lives, calls of a group have a timeout of their own. Does nothing
// without a group or a timeout.
//
// Threads: one thread, between calls of the group.
class ScopedTimeout {
 public:
  ScopedTimeout(Collective* group, std::optional<absl::Duration> timeout)
      : group_(timeout.has_value() ? group : nullptr) {
    if (group_ != nullptr) group_->SetTimeout(timeout);
  }
  ~ScopedTimeout() {
    if (group_ != nullptr) group_->SetTimeout(std::nullopt);
  }
  ScopedTimeout(const ScopedTimeout&) = delete;
  ScopedTimeout& operator=(const ScopedTimeout&) = delete;

 private:
  Collective* const group_;
};

// Checks the argument `for_member` of Scatter().
//
//   kInvalidArgument  not one entry for each member of the group
absl::Status CheckScatter(const Collective& group,
                          const std::vector<std::vector<Leaf>>& for_member);

// Leaves that CheckLeaf() refuses must not travel. If there is one, clears
// `leaves` and adds the error to `description`, so that the call fails at the
// other members too and none waits in vain; returns the error, which the caller
// must return after the call. If there is none, changes nothing and returns OK.
absl::Status WithholdMisfits(std::string& description,
                             std::vector<Leaf>& leaves);

// Returns when all members have called it. Errors: as Exchange().
absl::Status Barrier(Collective& group);

// Returns the leaves of member `root`. Errors: as Exchange();
//
//   kInvalidArgument  also: no such member
absl::StatusOr<std::vector<Leaf>> Broadcast(Collective& group, int root,
                                            std::vector<Leaf> mine);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_COLLECTIVE_H_
