#ifndef LOCKSTEP_SERVER_MIRROR_MEAN_FETCHER_H_
#define LOCKSTEP_SERVER_MIRROR_MEAN_FETCHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/mirror/fetch_list.h"
#include "server/mirror/mapped_means.h"
#include "server/shard/mean_requests.h"
#include "server/shard/shard_host.h"

namespace lockstep::server {

// MeanFetcher fetches the means of a mirrored job that other servers compute,
// for this server's shard, from the beginning of each attempt on: a call waits
// at the other server until the means are computed. Failed calls are repeated
// for as long as the attempt lasts. The fetcher is idle if the job is not
// mirrored.
//
// Threads: one of its own, and gRPC's, in which updates run.
// Borrows: the host.
class MeanFetcher {
 public:
  struct Options {
    std::vector<std::string> servers = {};  // addresses by index of the ps task
    TaskId self;
    uint64_t incarnation = 0;
    bool shared_memory = true;  // read means of this host's servers in place
    // Called with the answers that the shard made ready, with no lock held.
    std::function<void(Shard&, ShardAnswers)> on_answers = {};
  };

  MeanFetcher(const Options& options, ShardHost& host);
  // Cancels the calls in flight and waits for them.
  ~MeanFetcher();
  MeanFetcher(const MeanFetcher&) = delete;
  MeanFetcher& operator=(const MeanFetcher&) = delete;

 private:
  struct Call;

  // Loop of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts the calls for wanted means that have not been requested yet, and
  // cancels those of a shard that was discarded.
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels the calls of other shards than `current`, whose memory they hold.
  void CancelOthers(const Shard* current) ABSL_LOCKS_EXCLUDED(mutex_);
  void Start(const std::shared_ptr<Shard>& shard, const Fetch& fetch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Done(Call* call, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Take(const Call& call);
  absl::StatusOr<std::vector<PartGradient>> Read(const Call& call);
  grpc::GenericStub& Stub(int server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  ShardHost& host_;
  const std::string pid_space_;  // empty: without shared memory
  MappedMeans mapped_;

  Mutex mutex_;
  CondVar idle_;
  CondVar changed_;  // ended_
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;  // since the last Look()
  MeanRequests requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_
      ABSL_GUARDED_BY(mutex_);
  std::map<Call*, std::unique_ptr<Call>> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_MEAN_FETCHER_H_
