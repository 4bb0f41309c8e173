#ifndef LOCKSTEP_SERVER_PS_SERVER_H_
#define LOCKSTEP_SERVER_PS_SERVER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/cluster.h"
#include "common/membership/chief_client.h"
#include "common/metrics/metric_families.h"
#include "common/rpc/server.h"
#include "server/mirror/mean_fetcher.h"
#include "server/mirror/mirror_service.h"
#include "server/rpc/call_stream_service.h"
#include "server/rpc/parameter_service.h"
#include "server/rpc/replies.h"
#include "server/rpc/shard_control_service.h"
#include "server/rpc/sync_service.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard_host.h"
#include "server/shard/shard_pulse.h"

namespace lockstep::server {

// PsServer is one ps task, from registration to the end of the job. If the
// chief declares it dead by mistake, it joins again with all its state. In a
// job with elastic workers, each mirror but that of worker 0 may leave while
// the job goes on.
//
// Threads: RequestStop(), FollowWorker(), may_leave() and Metrics() may be
//          called from any thread.
class PsServer {
 public:
  struct Options {
    std::string state_dir;
    bool own_state_dir = false;     // remove it at the end, if it is empty
    std::string expected_job;       // job name to insist on; empty: any
    bool shared_memory = true;      // with workers of this host
    bool shared_means = true;       // read those of other servers, likewise
    ParameterService::Moved moved;  // may be null
    // Served at the same address; borrowed. They must outlive this object.
    std::vector<grpc::Service*> more_services = {};
    // As ChiefClient::Options.
    absl::Duration chief_wait = absl::InfiniteDuration();
  };

  // Listens on the task's address.
  //
  //   kUnavailable  the port is taken
  //   and the errors of StateFile::CheckDirectory()
  static absl::StatusOr<std::unique_ptr<PsServer>> Start(const Cluster& cluster,
                                                         const Options& options,
                                                         const Clock& clock);
  ~PsServer();

  // Serves until the job ends, or this server has left it.
  //
  //   kOk         the job is done
  //   kCancelled  the job or this server was stopped
  //   and the errors of ChiefClient::end() and Register()
  absl::Status Run();

  // The shard's step and size, and the outcomes of pushes.
  MetricFamilies Metrics() const;

  // Makes Run() return, since this server must end. If may_leave(), the server
  // serves for another second, in which the chief can take its worker out.
  // Otherwise it requests that the chief stop the job with a checkpoint, and
  // serves until that is written: Run() returns when the chief says so, or has
  // been silent for 15 seconds. A server that has not registered yet requests
  // it, too; the chief ignores that if the job can go on without this server.
  void RequestStop(const std::string& reason);
  // As RequestStop(), after the worker beside this server has left. A server
  // that has not registered yet requests nothing: the chief acts on the reason
  // with which the worker has left.
  void FollowWorker(const std::string& reason);

  // After Run(): true if the chief has refused to let this server in again.
  bool was_refused() const { return was_refused_; }

  // True if the job goes on when this server leaves. False until the server has
  // registered.
  bool may_leave() const { return member_ == Member::kMayLeave; }

 private:
  // Whether the job needs this server, as far as this server knows.
  enum class Member { kUnknown, kNeeded, kMayLeave };

  PsServer(const Options& options, const Cluster& cluster, uint64_t incarnation,
           ChiefClient::Options chief, const Clock& clock);
  // Registers with the chief.
  absl::Status Join();
  // Ends the wait for the end of the job.
  void EndRun();
  // After a stop: waits for the end of the job, if it is to come.
  void AwaitEnd();
  // After the chief was asked to stop the job with a checkpoint, which it reads
  // from here: waits for that, however long it takes.
  void AwaitCheckpoint();
  // Loop of a thread: answers calls that have waited for long, and cancels
  // calls whose callers do not read the answers.
  void Tick();
  // Ends the calls that wait now.
  void EndAllCalls();
  // Loop of a thread: applies the updates that waited for readers, once these
  // have returned the memory. The readers end in gRPC's threads, which must not
  // update parts.
  void UpdateReturnedParts();

  const Clock& clock_;
  const uint64_t incarnation_;
  const int index_;                  // of this task
  const std::string own_state_dir_;  // empty: not removed at the end
  ShardHost host_;
  ChiefCommands commands_;
  Replies replies_;
  ParameterService parameters_;
  SyncService sync_;
  ChiefClient chief_;
  ShardControlService control_;  // its thread uses chief_ and server_
  CallStreamService streams_;
  MirrorService mirror_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<ShardPulse> pulse_;  // uses server_
  std::unique_ptr<MeanFetcher> fetcher_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> asked_ = false;  // the chief, to stop the job
  std::atomic<Member> member_ = Member::kUnknown;
  std::atomic<bool> was_refused_ = false;
  std::atomic<bool> closing_ = false;
  std::atomic<bool> end_ticks_ = false;
  std::thread ticks_;
  std::thread returns_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_PS_SERVER_H_
