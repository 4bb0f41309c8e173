#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_COORDINATOR_CLIENT_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_COORDINATOR_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/status/job_status.h"

namespace lockstep {

// CoordinatorClient talks to one chief, which need not be up yet.
//
// Threads: safe to share.
// Errors:  messages start with the chief's address.
class CoordinatorClient {
 public:
  explicit CoordinatorClient(const std::string& address);
  ~CoordinatorClient();

  // All calls wait while nobody listens at the address. Without a call that
  // waits no thread of this process would carry on the making of a connection.
  //
  //   kDeadlineExceeded  no answer within `timeout`
  //   kUnavailable       the connection broke
  //   and what the chief answers
  absl::StatusOr<JobStatus> GetStatus(absl::Duration timeout);

  // Asks the job to stop after the current step; with `hold` its processes ask
  // not to be started again. Fails as GetStatus does.
  absl::Status Stop(const std::string& reason, absl::Duration timeout,
                    bool hold = false);

  // Asks for a checkpoint. Returns a step: it will be of that or a later one.
  // Fails as GetStatus does.
  absl::StatusOr<int64_t> Checkpoint(absl::Duration timeout);

  // What to change; absent fields stay.
  struct Change {
    std::optional<int> replicas_to_aggregate{};
    std::optional<double> learning_rate{};
    std::optional<bool> paused{};
    std::optional<int> remove_worker{};
  };
  // Asks for a change. Returns the revision of the settings that will have it.
  // Fails as GetStatus does.
  absl::StatusOr<int64_t> ChangeSettings(const Change& change,
                                         absl::Duration timeout);

 private:
  struct Stub;  // keeps gRPC out of this header, and so out of its users

  const std::string address_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_COORDINATOR_CLIENT_H_
