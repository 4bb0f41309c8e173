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
#include "common/observe/metrics.h"
#include "common/rpc/server.h"
#include "server/rpc/call_stream_service.h"
#include "server/rpc/parameter_service.h"
#include "server/rpc/replies.h"
#include "server/rpc/shard_control_service.h"
#include "server/rpc/sync_service.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard_host.h"
#include "server/shard/shard_pulse.h"

namespace lockstep {

// PsServer is one ps task, from registration to the end of the job. When the
// chief takes it for dead by mistake it joins again, with all that it holds.
//
// Threads: RequestStop() and Metrics() may be called from any thread.
class PsServer {
 public:
  struct Options {
    std::string state_dir;
    bool own_state_dir = false;     // it is to go when nothing is left in it
    std::string expected_job;       // job name to insist on; empty: any
    bool shared_memory = true;      // with workers of this host
    ParameterService::Moved moved;  // told what calls move, if given
    // As ChiefClient::Options has it.
    absl::Duration chief_wait = absl::InfiniteDuration();
  };

  // Listens on the task's address.
  //
  //   kUnavailable  the port is taken
  //   and what StateFile::CheckDirectory() says of the state directory
  static absl::StatusOr<std::unique_ptr<PsServer>> Start(const Cluster& cluster,
                                                         const Options& options,
                                                         const Clock& clock);
  ~PsServer();

  // Serves until the job ends.
  //
  //   kOk         the job is done
  //   kCancelled  the job was stopped
  //   others      as ChiefClient::end() and Register()
  absl::Status Run();

  // Where the shard is, and what was pushed to it.
  std::vector<Metric> Metrics() const;

  // Tells the chief that this server has to go, so that it stops the job with
  // a checkpoint; Run() returns when that has happened, or after a while.
  void RequestStop(const std::string& reason);

 private:
  PsServer(const Options& options, const Cluster& cluster, uint64_t incarnation,
           ChiefClient::Options chief, const Clock& clock);
  // Registers with the chief.
  absl::Status Join();
  // Answers what has waited for long, and takes back what has been lent for
  // long, now and then.
  void Tick();
  // Makes the updates that waited for readers of the memory they write to.
  // gRPC's threads, where those readers end, must not do such work.
  void UpdateReturnedParts();

  const Clock& clock_;
  const std::string own_state_dir_;  // empty: it is somebody else's
  ShardHost host_;
  ChiefCommands commands_;
  Replies replies_;
  ParameterService parameters_;
  SyncService sync_;
  ShardControlService control_;
  CallStreamService streams_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<ShardPulse> pulse_;  // tells server_
  ChiefClient chief_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> end_ticks_ = false;
  std::thread ticks_;
  std::thread returns_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_SERVER_H_
