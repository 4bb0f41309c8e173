#ifndef LOCKSTEP_WORKER_HOSTED_HOSTED_CHIEF_H_
#define LOCKSTEP_WORKER_HOSTED_HOSTED_CHIEF_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/chief.h"
#include "common/base/clock.h"
#include "common/cluster/cluster.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"
#include "common/rpc/server.h"

namespace lockstep::worker {

// HostedChief is the chief in the process of worker 0, for a cluster without a
// chief task. It is served at that worker's address.
//
// Threads: RequestStop() and Metrics() may be called from any thread.
class HostedChief {
 public:
  // Starts the chief's thread. With `recorded`, the chief records the job for
  // its page. Errors as Chief::Make().
  static absl::StatusOr<std::unique_ptr<HostedChief>> Start(
      const Cluster& cluster, const JobConfig& job, const Clock& clock,
      Beginning beginning, bool recorded = false);

  // Listens on the worker's own address. Nothing else in this process may
  // listen there. Errors as GrpcServer::Start().
  absl::Status Serve(const std::string& address);

  // Returns the services for a server that another part of this process starts,
  // in place of Serve(). That server must end before this object.
  std::vector<grpc::Service*> services() { return chief_->services(); }
  // Stops the job if it still runs.
  ~HostedChief();

  // As Chief::RequestStop().
  void RequestStop(const std::string& reason) { chief_->RequestStop(reason); }

  // As Chief::RecordForPage() returns them; empty without a record.
  std::vector<StatusPage> Pages() const { return pages_; }

  MetricFamilies Metrics() const { return chief_->Metrics(); }

  // Waits until the job has ended. Returns the status of Chief::Run().
  absl::Status Wait();

 private:
  HostedChief() = default;

  std::unique_ptr<chief::Chief> chief_;
  std::vector<StatusPage> pages_;
  std::unique_ptr<GrpcServer> server_;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOSTED_HOSTED_CHIEF_H_
