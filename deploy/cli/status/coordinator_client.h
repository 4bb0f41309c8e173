#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_COORDINATOR_CLIENT_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_COORDINATOR_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/status/job_status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace lockstep::cli {

// Returns the error of a call to the chief at `address` for an operator: it
// starts with the address, and says what to check where no chief answered.
absl::Status ExplainCall(const grpc::Status& status, const std::string& address,
                         absl::Duration timeout);

// CoordinatorClient calls one chief, which need not be up yet.
//
// Threads: safe to share.
// Errors:  messages start with the chief's address.
class CoordinatorClient {
 public:
  explicit CoordinatorClient(const std::string& address);
  ~CoordinatorClient();

  // All calls wait while no process listens at the address; the connection is
  // only established during such a call.
  //
  //   kDeadlineExceeded  no answer within `timeout`
  //   kUnavailable       the connection broke
  //   and the errors of the chief
  absl::StatusOr<JobStatus> GetStatus(absl::Duration timeout);

  // Requests a stop after the current step; with `hold` the exit codes of the
  // job's processes ask for no restart. Errors as GetStatus().
  absl::Status Stop(const std::string& reason, absl::Duration timeout,
                    bool hold = false);

  // Requests a checkpoint. Returns a step: the checkpoint will hold that step
  // or a later one. Errors as GetStatus().
  absl::StatusOr<int64_t> Checkpoint(absl::Duration timeout);

  // A change of settings; absent fields stay.
  struct Change {
    std::optional<int> replicas_to_aggregate{};
    std::optional<double> learning_rate{};
    std::optional<bool> paused{};
    std::optional<int> remove_worker{};
  };
  // Requests a change. Returns the revision of the settings that will contain
  // it. Errors as GetStatus().
  absl::StatusOr<int64_t> ChangeSettings(const Change& change,
                                         absl::Duration timeout);

 private:
  struct Stub;  // keeps gRPC out of this header and of its users

  const std::string address_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_COORDINATOR_CLIENT_H_
