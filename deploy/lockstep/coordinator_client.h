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
  // What a call does while nobody listens at the address.
  enum class IfAbsent { kFail, kWait };

  explicit CoordinatorClient(const std::string& address);
  ~CoordinatorClient();

  //   kUnavailable       nobody listens there
  //   kDeadlineExceeded  no answer within `timeout`
  //   and what the chief answers
  absl::StatusOr<JobStatus> GetStatus(absl::Duration timeout,
                                      IfAbsent if_absent);

  // Asks the job to stop after the current step. Fails as GetStatus does.
  absl::Status Stop(const std::string& reason, absl::Duration timeout,
                    IfAbsent if_absent);

 private:
  struct Stub;  // keeps gRPC out of this header, and so out of its users

  const std::string address_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_LOCKSTEP_COORDINATOR_CLIENT_H_
