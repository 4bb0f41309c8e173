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
#include "strategy/workers/peer_probes.h"
#include "strategy/workers/shared_inbox.h"
#include "strategy/workers/shared_outbox.h"

namespace lockstep::strategy {

// NetworkGroup is one member of a group of n processes. Each sends its parcels
// to each other one over gRPC: in an exchange a member sends n - 1 times its
// own bytes and receives those of all others; in a scatter it sends the bytes
// of the parcels for the others. Members of one host read large parcels in each
// other's memory instead.
//
// If a member restarts, leaves, dies, or misses a timeout, the group ends for
// all: every later call returns the error that ended it and names that member.
// To go on, all members must make a new group. A call that waits says so in the
// log, with the members that it waits for.
//
// Threads: as Collective.
class NetworkGroup final : public Collective, private GroupHandler {
 public:
  struct Options {
    int rank = 0;
    std::vector<std::string> addresses;         // of all members, by rank
    std::string purpose;                        // must be equal at all members
    absl::Duration timeout = absl::Minutes(5);  // of an exchange
    absl::Duration join_timeout = absl::Minutes(10);  // of Join()
    // The log has a line after a wait of this time, and then after each two.
    absl::Duration notice = absl::Seconds(5);
    // As PeerProbes::Options.
    absl::Duration probe_every = absl::Seconds(10);
    absl::Duration probe_timeout = absl::Seconds(10);
    // With members of the same host and pid name space.
    bool shared_memory = true;
  };

  // Serves at addresses[rank], and waits until all members have joined.
  //
  //   kInvalidArgument   the rank, an address or a timeout is not valid, or a
  //                      member has another purpose or number of members
  //   kUnavailable       the address is in use
  //   kUnimplemented     another program serves at a member's address; names it
  //   kDeadlineExceeded  members did not join in time; names them, and has
  //                      ConnectionAdvice() for them
  static absl::StatusOr<std::unique_ptr<NetworkGroup>> Join(
      const Options& options);
  // Leaves the group, which ends it for the others.
  ~NetworkGroup() override;

  int rank() const override { return options_.rank; }
  int members() const override {
    return static_cast<int>(options_.addresses.size());
  }

  // Errors: also
  //
  //   kAborted          a member has left or restarted, or is in another group;
  //                     names it
  //   kUnavailable      a member has answered no probe; names it
  //   kUnimplemented    another program has a member's address now; names it
  //   kInvalidArgument  as CheckLeaf(), at all members
  absl::StatusOr<std::vector<Parcel>> Exchange(const std::string& description,
                                               std::vector<Leaf> mine) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Member r gets only for_member[r] of each other member. Errors: as
  // Exchange().
  bool scatters_apart() const override { return true; }
  absl::StatusOr<std::vector<Parcel>> Scatter(
      const std::string& description,
      std::vector<std::vector<Leaf>> for_member) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Ended() const override ABSL_LOCKS_EXCLUDED(mutex_);

  // The members whose memory this one has mapped, to read payloads in it.
  std::vector<int> mapped_members() const { return inbox_.members(); }

 private:
  explicit NetworkGroup(const Options& options);
  // `for_member` must have a parcel for each member.
  absl::StatusOr<std::vector<Parcel>> GiveAndTake(
      const std::string& description, const std::vector<Parcel>& for_member)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The members, by rank, that read the payload of their parcel in this one's
  // memory.
  std::vector<bool> SharersOf(const std::vector<Parcel>& for_member)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The wait of a call.
  struct Wait;
  // Waits for a change, and says in the log that `call` waits for the `missing`
  // members. False once the deadline has passed. May release the lock
  // meanwhile.
  bool WaitOn(const std::string& call, const std::vector<int>& missing,
              Wait& wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // "rank 1 (10.0.0.2:7001), rank 2 (10.0.0.3:7001)"
  std::string NamesOf(const std::vector<int>& ranks) const;
  // "; " and the ConnectionAdvice() for one of the members; empty if there is
  // none. Blocks for some seconds.
  std::string AdviceFor(const std::vector<int>& ranks) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Start();
  // Probes the members of the formed group.
  absl::Status StartProbes() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WaitUntilFormed() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the outcome of the exchange; absent while it must wait.
  std::optional<absl::StatusOr<std::vector<Parcel>>> Look(uint64_t sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the members that the exchange lacks.
  std::vector<int> AwaitedIn(uint64_t sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns kDeadlineExceeded with the members that the exchange lacks.
  absl::Status Late(const std::string& description, uint64_t sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool OnAnswer(int rank, const absl::StatusOr<GreetingAnswer>& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnGiven(int rank, uint64_t sequence, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnLost(int rank, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // GroupHandler: calls of other members.
  absl::StatusOr<GreetingAnswer> Hear(const Greeting& greeting, int receiver,
                                      bool leaves) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Admit(const v1::ParcelHeader& header) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Read(const v1::ParcelHeader& header,
                    ParcelReader& reader) override {
    return inbox_.Read(header, reader);
  }
  absl::Status Arrive(const v1::ParcelHeader& header,
                      std::vector<Leaf> leaves) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The start of a member that the view has; 0: none, or no such member.
  uint64_t StartOf(int rank) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called after a change of the view, with the start that it had before.
  void ForgetReplaced(int rank, uint64_t start)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status AdmitLocked(const v1::ParcelHeader& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the parcel had arrived before: the answer to its sender was lost,
  // and the sender repeats it.
  bool HasCome(const v1::ParcelHeader& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::string pid_space_;  // empty: without shared memory
  SharedOutbox outbox_;          // of the exchange; used by its thread
  SharedInbox inbox_;
  GroupService service_;
  std::unique_ptr<GrpcServer> server_;

  mutable Mutex mutex_;
  CondVar changed_;
  GroupView view_ ABSL_GUARDED_BY(mutex_);
  ExchangeTable table_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // number of the next exchange
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) =
      0;  // exchanges that have ended here
  // Members that have not accepted this member's parcel of the current exchange
  // yet: OK, or their refusal.
  std::map<int, absl::Status> unfinished_ ABSL_GUARDED_BY(mutex_);
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // OK while the group lives

  std::vector<std::unique_ptr<GroupLink>> links_;  // by rank; null for rank()
  std::unique_ptr<PeerProbes> probes_;  // null until the group is formed
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_NETWORK_GROUP_H_
