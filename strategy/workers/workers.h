#ifndef LOCKSTEP_STRATEGY_WORKERS_WORKERS_H_
#define LOCKSTEP_STRATEGY_WORKERS_WORKERS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/collective/collective.h"

namespace lockstep::strategy {

// How the values of a worker come to the others; the same at all workers.
enum class Implementation {
  kAuto,    // kNccl where all workers can use it, else kDirect
  kDirect,  // over gRPC
  // Large values from GPU to GPU by NCCL, all else over gRPC. Each worker must
  // have the library and a GPU of its own.
  kNccl,
};

// "AUTO", "DIRECT" or "NCCL".
std::string NameOf(Implementation implementation);

// How the processes of a program find each other, and talk.
struct WorkersOptions {
  // File; empty: the environment variable TF_CONFIG. Without one, or without a
  // cluster in it, there is one worker.
  std::string tf_config{};
  // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
  // which `lockstep run` sets. Without either there are no certificates.
  std::string tls_dir{};
  std::string log_level = "warning";
  // An exchange in which a member is missing fails after this time.
  absl::Duration timeout = absl::Minutes(5);
  // For all members to start.
  absl::Duration join_timeout = absl::Minutes(10);
  Implementation implementation = Implementation::kAuto;
  // The GPU that NCCL uses; -1: the one with the worker's number among the
  // workers of its host, counted from 0.
  int gpu = -1;
};

// Joins the group of the workers that TF_CONFIG names; in a cluster without ps
// a chief task is worker 0 of it. Each serves at its address in the cluster.
// Returns when all have come. `purpose` says what all must agree on.
//
//   kInvalidArgument    TF_CONFIG cannot be, or names a task that is no worker;
//                       a member has another purpose, another cluster or
//                       another implementation; two with kNccl have the same
//                       GPU
//   kFailedPrecondition a member with kNccl has no NCCL, or no such GPU; names
//                       it, the reason and the fix
//   kUnavailable        the task's address is in use
//   kPermissionDenied   certificates do not name the tasks
//   kDeadlineExceeded   members did not start in time; names them
//   kAborted            a member has left, or begun again, meanwhile
//   others              as reading the file and the certificates
absl::StatusOr<std::unique_ptr<Collective>> JoinWorkers(
    const WorkersOptions& options, const std::string& purpose);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_WORKERS_H_
