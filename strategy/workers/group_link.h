#ifndef LOCKSTEP_STRATEGY_WORKERS_GROUP_LINK_H_
#define LOCKSTEP_STRATEGY_WORKERS_GROUP_LINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/collective/exchange_table.h"
#include "common/collective/group_view.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/group.grpc.pb.h"

namespace lockstep::strategy {

// A parcel on its way to one member.
struct Outgoing {
  v1::ParcelHeader header;
  Parcel leaves;
};

// GroupLink calls one other member of a group: it greets it until it is told to
// stop, and gives it parcels, one after the other. Calls that do not reach the
// member are repeated until the link ends.
//
// Threads: safe to share; it calls back from a thread of its own.
class GroupLink {
 public:
  struct Options {
    std::string address;
    int receiver = 0;  // rank
    Greeting self;
    // Called for each greeting; returns whether to greet once more.
    std::function<bool(const absl::StatusOr<GreetingAnswer>&)> on_answer;
    // The member has the parcel of `sequence`, or does not want it.
    std::function<void(uint64_t sequence, const absl::Status&)> on_given;
  };

  // Begins to greet.
  explicit GroupLink(const Options& options);
  // Cancels the call in flight, then tells the member, if it can be reached
  // within a second, that this one leaves.
  ~GroupLink();
  GroupLink(const GroupLink&) = delete;
  GroupLink& operator=(const GroupLink&) = delete;

  // Greets, also after an answer that had ended it.
  void Greet() ABSL_LOCKS_EXCLUDED(mutex_);
  void Give(Outgoing parcel) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all calls; there are no callbacks after its return. Idempotent.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Loop of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // One call, without a lock held.
  absl::StatusOr<GreetingAnswer> CallGreet(bool leaves);
  absl::Status CallGive(const Outgoing& parcel);
  void Pause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<v1::GroupService::Stub> stub_;

  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool greets_ ABSL_GUARDED_BY(mutex_) = true;
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* in_flight_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_GROUP_LINK_H_
