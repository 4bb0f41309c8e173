#ifndef LOCKSTEP_WORKER_CLIENT_SERVER_LINKS_H_
#define LOCKSTEP_WORKER_CLIENT_SERVER_LINKS_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/wire/sender.h"
#include "worker/client/chunks/chunk_transfer.h"
#include "worker/client/rpc/call_poller.h"
#include "worker/client/rpc/server_channel.h"

namespace lockstep::worker {

// ServerLinks is a worker's connections to all servers of a job. Private to
// worker/client.
//
// Threads: one thread calls; Cancel() may come from any other.
class ServerLinks {
 public:
  struct Options {
    std::vector<std::string> servers;  // addresses by index of the ps task
    Sender self;
    int pollers = 0;      // threads, as CallPoller takes them
    int connections = 0;  // as in ParameterClient::Options
  };

  explicit ServerLinks(const Options& options);

  int num_servers() const { return static_cast<int>(channels_.size()); }
  const Sender& self() const { return self_; }
  CallPoller& poller() { return poller_; }
  ServerChannel& channel(int server) { return *channels_[server]; }

  // Makes the calls in flight and all later ones end with kCancelled.
  void Cancel();
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  // Returns options for a transfer over these links. `what` names the transfer
  // in the log line that appears every few seconds while a server is away.
  ChunkTransfer::Options TransferOptions(const std::string& what);

  // Runs the transfer to its end.
  //
  //   kCancelled  Cancel() was called
  //   others      as ChunkTransfer::Run()
  absl::Status Finish(ChunkTransfer& transfer);

 private:
  const Sender self_;
  std::atomic<bool> cancelled_ = false;
  CallPoller poller_;
  std::vector<std::unique_ptr<ServerChannel>> channels_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_SERVER_LINKS_H_
