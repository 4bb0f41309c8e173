#ifndef LOCKSTEP_STRATEGY_WORKERS_NETWORK_GROUP_H_
#define LOCKSTEP_STRATEGY_WORKERS_NETWORK_GROUP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/collective/collective.h"
#include "common/collective/exchange_table.h"
#include "common/collective/group_view.h"
#include "common/rpc/security/caller.h"
#include "common/rpc/server.h"
#include "strategy/workers/group_link.h"
#include "strategy/workers/group_service.h"

namespace lockstep::strategy {

// NetworkGroup is a member of a group of processes. Each gives its parcels to
// each other one over gRPC, so an exchange costs a member (n - 1) times its own
// bytes out and those of all others in; a scatter costs the bytes of the
// parcels for the others.
//
// A member that begins again, leaves, or does not come in time ends the group
// for all: every call from then on is kAborted, and names it. To go on, all
// members make the group anew.
//
// Threads: as Collective.
class NetworkGroup final : public Collective, private GroupHandler {
 public:
  struct Options {
    int rank = 0;
    std::vector<std::string> addresses;               // of all members, by rank
    std::string purpose;                              // the same at all members
    absl::Duration timeout = absl::Minutes(5);        // of an exchange
    absl::Duration join_timeout = absl::Minutes(10);  // for all to come
  };

  // Serves at its own address, and waits for the others.
  //
  //   kInvalidArgument   a rank, an address or a timeout that cannot be;
  //   members
  //                      with another purpose or number of members
  //   kUnavailable       the address is in use
  //   kDeadlineExceeded  members did not come in time; names them
  static absl::StatusOr<std::unique_ptr<NetworkGroup>> Join(
      const Options& options);
  // Tells the others that it leaves.
  ~NetworkGroup() override;

  int rank() const override { return options_.rank; }
  int members() const override {
    return static_cast<int>(options_.addresses.size());
  }

  // Errors: also
  //
  //   kAborted  the group has ended; says which member has left, begun again or
  //             not come in time
  absl::StatusOr<std::vector<Parcel>> Exchange(const std::string& description,
                                               std::vector<Leaf> mine) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Each member gets its own parcel alone. Errors: as Exchange().
  absl::StatusOr<std::vector<Parcel>> Scatter(
      const std::string& description,
      std::vector<std::vector<Leaf>> for_member) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Ended() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit NetworkGroup(const Options& options);
  // `for_member` has a parcel for each member.
  absl::StatusOr<std::vector<Parcel>> GiveAndTake(
      const std::string& description, const std::vector<Parcel>& for_member)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Start();
  absl::Status WaitUntilFormed() ABSL_LOCKS_EXCLUDED(mutex_);
  // What the exchange has come to: absent while it waits.
  std::optional<absl::StatusOr<std::vector<Parcel>>> Look(uint64_t sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Late(const std::string& description, uint64_t sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool OnAnswer(int rank, const absl::StatusOr<GreetingAnswer>& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnGiven(int rank, uint64_t sequence, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // GroupHandler: calls of other members.
  absl::StatusOr<GreetingAnswer> Hear(const Greeting& greeting, int receiver,
                                      bool leaves) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Admit(const v1::ParcelHeader& header) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Arrive(const v1::ParcelHeader& header,
                      std::vector<Leaf> leaves) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status AdmitLocked(const v1::ParcelHeader& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the parcel was there before: its sender has not heard of it.
  bool HasCome(const v1::ParcelHeader& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  GroupService service_;
  std::unique_ptr<GrpcServer> server_;

  mutable Mutex mutex_;
  CondVar changed_;
  GroupView view_ ABSL_GUARDED_BY(mutex_);
  ExchangeTable table_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;   // exchange of this member
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // exchanges that are over here
  // Members that do not have this one's parcel of the exchange at hand yet.
  std::map<int, absl::Status> unfinished_ ABSL_GUARDED_BY(mutex_);
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // OK while the group lives

  std::vector<std::unique_ptr<GroupLink>> links_;  // null for itself
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_NETWORK_GROUP_H_
