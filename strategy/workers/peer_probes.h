#ifndef LOCKSTEP_STRATEGY_WORKERS_PEER_PROBES_H_
#define LOCKSTEP_STRATEGY_WORKERS_PEER_PROBES_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/collective/group_view.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/group.grpc.pb.h"

namespace lockstep::strategy {

// PeerProbes asks the other members of a formed group in turn whether they
// live: a member that is killed says no farewell, and one that waits for its
// parcel would not notice. A probe is a greeting, which has no effect on a
// member of the same group. One that has begun again greets by itself, so its
// answer counts as one.
//
// Threads: the callback runs in the thread of the probes.
class PeerProbes {
 public:
  struct Options {
    Greeting self;
    std::vector<std::string> addresses;          // of all members, by rank
    absl::Duration every = absl::Seconds(10);    // between two rounds
    absl::Duration timeout = absl::Seconds(10);  // of a probe
    // Called once for each member that has not answered kTries probes, or that
    // has answered them as a member whose group is another one or has ended,
    // with kAborted; with kUnimplemented if another program has its address.
    std::function<void(int rank, const absl::Status& why)> on_lost;
  };
  static constexpr int kTries = 3;

  explicit PeerProbes(Options options);
  // Starts to probe. Must be called at most once.
  //
  //   kResourceExhausted  the system has no more threads
  absl::Status Begin();
  // Cancels the probe in flight. No callback runs afterwards, so it must not be
  // called from one.
  ~PeerProbes();
  PeerProbes(const PeerProbes&) = delete;
  PeerProbes& operator=(const PeerProbes&) = delete;

 private:
  // Loop of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // True once the end of the probes has begun; waits at most `time` for it.
  bool EndsWithin(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if the member has answered one of kTries probes, or at the end.
  absl::Status Ask(size_t rank) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Call(size_t rank) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  // By rank; null for the own one and for those that are lost. The thread's.
  std::vector<std::unique_ptr<v1::GroupService::Stub>> stubs_;

  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* in_flight_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_PEER_PROBES_H_
