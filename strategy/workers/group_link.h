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

// A parcel on its way to one member. If the header names the place of the
// payload, the leaves are sent only to a member that cannot read it there.
struct Outgoing {
  v1::ParcelHeader header;
  Parcel leaves;
};

// The request in which `self` greets the member `receiver`, or leaves it.
v1::GreetRequest GreetingOf(const Greeting& self, int receiver, bool leaves);

// GroupLink makes the calls to one other member of a group: greetings until
// `on_answer` returns false, and parcels, one after the other. It calls from
// Begin() on, and repeats calls that do not reach the member until End().
//
// Threads: safe to share; the callbacks run in the link's thread.
class GroupLink {
 public:
  struct Options {
    std::string address;
    int receiver = 0;  // rank
    Greeting self;
    // Called with the outcome of each greeting; must return true to greet once
    // more.
    std::function<bool(const absl::StatusOr<GreetingAnswer>&)> on_answer;
    // Called when the member has accepted (OK) or refused the parcel of
    // exchange `sequence`.
    std::function<void(uint64_t sequence, const absl::Status&)> on_given;
  };

  explicit GroupLink(const Options& options);
  // After Begin(), cancels the call in flight, then sends a greeting that says
  // that this member leaves; waits at most a second for its answer.
  ~GroupLink();
  GroupLink(const GroupLink&) = delete;
  GroupLink& operator=(const GroupLink&) = delete;

  // Starts to greet the member. Must be called at most once, by the thread that
  // destroys this object, and not after End().
  //
  //   kResourceExhausted  the system has no more threads
  absl::Status Begin();
  // Starts to greet again, also after `on_answer` has returned false.
  void Greet() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends `parcel` after all earlier ones.
  void Give(Outgoing parcel) ABSL_LOCKS_EXCLUDED(mutex_);
  // False once the member has said that it cannot read payloads in memory.
  bool shares() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return shares_;
  }
  // Ends all calls. No callback runs after its return, so it must not be called
  // from one. Idempotent.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Loop of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Each makes one call. `leaves`: this member leaves the group.
  absl::StatusOr<GreetingAnswer> CallGreet(bool leaves);
  absl::Status CallGive(const Outgoing& parcel);
  // Waits before a call is repeated, but not longer than until End().
  void Pause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<v1::GroupService::Stub> stub_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool shares_ ABSL_GUARDED_BY(mutex_) = true;
  bool greets_ ABSL_GUARDED_BY(mutex_) = true;
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* in_flight_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
  bool begun_ = false;  // Begin() has been called
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_GROUP_LINK_H_
