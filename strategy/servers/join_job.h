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

// How a worker finds its job.
struct JobOptions {
  // File; empty: the environment variable TF_CONFIG, which must have ps tasks.
  std::string tf_config{};
  // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
  // which `lockstep run` sets. Without either there are no certificates.
  std::string tls_dir{};
  std::string log_level = "warning";
};

// A variable that the servers will hold.
struct JobVariable {
  std::string name;  // unique in the job
  std::vector<int64_t> shape;
  DType dtype = DType::kFloat32;
  // Its first values, row-major; must be valid until the first pass has come.
  // The job takes those of the worker that joins first.
  absl::Span<const std::byte> initial;
};

// Joins the job that TF_CONFIG names; `model { kind: "external" }` in its file.
// A process can be in one job at a time.
//
//   kInvalidArgument     TF_CONFIG, an address or a variable that cannot be
//   kFailedPrecondition  this process has joined a job
absl::StatusOr<std::unique_ptr<TrainingJob>> JoinJob(
    const JobOptions& options, const std::vector<JobVariable>& variables);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_SERVERS_JOIN_JOB_H_
