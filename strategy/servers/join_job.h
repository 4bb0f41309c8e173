#ifndef LOCKSTEP_STRATEGY_SERVERS_JOIN_JOB_H_
#define LOCKSTEP_STRATEGY_SERVERS_JOIN_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/numeric/dtype.h"
#include "strategy/servers/training_job.h"

namespace lockstep::strategy {

// Options of a worker that joins a job.
struct JobOptions {
  // A file; empty: the environment variable TF_CONFIG. Its cluster must have ps
  // tasks.
  std::string tf_config{};
  // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
  // which `lockstep run` sets. Without either there are no certificates.
  std::string tls_dir{};
  // Empty: the environment variable LOCKSTEP_LOG_LEVEL, which `lockstep run`
  // sets, or else "warning".
  std::string log_level{};
};

// A variable that the servers will hold.
struct JobVariable {
  std::string name;  // unique in the job
  std::vector<int64_t> shape;
  DType dtype = DType::kFloat32;
  // The initial elements, row-major; must be valid until Next() has returned
  // the first pass. A job starts with the values of one worker: the first whose
  // request for the plan reaches the chief.
  absl::Span<const std::byte> initial;
};

// Joins the job that TF_CONFIG names. The job file must have
// `model { kind: "external" }`. A process can be in one job at a time.
//
//   kInvalidArgument     TF_CONFIG, an address or a variable is not valid
//   kFailedPrecondition  this process is in a job already
absl::StatusOr<std::unique_ptr<TrainingJob>> JoinJob(
    const JobOptions& options, const std::vector<JobVariable>& variables);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_SERVERS_JOIN_JOB_H_
