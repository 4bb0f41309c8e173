#ifndef LOCKSTEP_DEPLOY_LOCKSTEP_COORDINATOR_CLIENT_H_
#define LOCKSTEP_DEPLOY_LOCKSTEP_COORDINATOR_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/lockstep/job_status.h"

namespace lockstep {

// CoordinatorClient talks to one chief, which need not be up yet.
//
// Threads: safe to share.
// Errors:  messages start with the chief's address.
class CoordinatorClient {
 public:
  explicit CoordinatorClient(const std::string& address);
  ~CoordinatorClient();

  // Both calls wait while nobody listens at the address. Without a call that
  // waits no thread of this process would carry on the making of a connection.
  //
  //   kDeadlineExceeded  no answer within `timeout`
  //   kUnavailable       the connection broke
  //   and what the chief answers
  absl::StatusOr<JobStatus> GetStatus(absl::Duration timeout);

  // Asks the job to stop after the current step. Fails as GetStatus does.
  absl::Status Stop(const std::string& reason, absl::Duration timeout);

 private:
  struct Stub;  // keeps gRPC out of this header, and so out of its users

  const std::string address_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_LOCKSTEP_COORDINATOR_CLIENT_H_
