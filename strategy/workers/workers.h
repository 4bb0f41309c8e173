#ifndef LOCKSTEP_STRATEGY_WORKERS_WORKERS_H_
#define LOCKSTEP_STRATEGY_WORKERS_WORKERS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/collective/collective.h"

namespace lockstep::strategy {

// How values travel between workers. Must be equal at all workers.
enum class Implementation {
  kAuto,    // kNccl if all workers can use it, else kDirect
  kDirect,  // over gRPC
  // Large values from GPU to GPU by NCCL, all else over gRPC. Each worker must
  // have the library and a GPU of its own.
  kNccl,
};

// "AUTO", "DIRECT" or "NCCL".
std::string NameOf(Implementation implementation);

// How the processes of a program find each other and exchange values.
struct WorkersOptions {
  // A file; empty: the environment variable TF_CONFIG. If that is not set, or
  // has no cluster, there is one worker.
  std::string tf_config{};
  // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
  // which `lockstep run` sets. Without either there are no certificates.
  std::string tls_dir{};
  // Empty: the environment variable LOCKSTEP_LOG_LEVEL, which `lockstep run`
  // sets, or else "warning".
  std::string log_level{};
  // The time after which an exchange fails if a member is missing.
  absl::Duration timeout = absl::Minutes(5);
  // The time within which all members must have started.
  absl::Duration join_timeout = absl::Minutes(10);
  // For kParameterServer alone: the workers of the job form a group too. Then
  // replicas(), input pipelines, reductions, and the variables that no server
  // has are those of all workers, and each call waits for all. Without a group,
  // which training does not need, no worker waits for another one.
  bool group_beside_servers = false;
  // Workers of one host read large values in each other's memory.
  bool shared_memory = true;
  Implementation implementation = Implementation::kAuto;
  // The GPU that NCCL uses; -1: the one with the worker's number among the
  // workers of its host, counted from 0.
  int gpu = -1;
};

// Joins the group of the workers that TF_CONFIG names; in a cluster without ps,
// a chief task is its worker 0. Each worker serves at its address in the
// cluster. Returns when all have joined. An evaluator is no member of that
// group: it gets a group of its own, in which it is alone. `purpose` is a text
// that must be equal at all workers, such as the kind of their strategy.
//
//   kInvalidArgument    TF_CONFIG is malformed, or its task is a ps, or a chief
//                       beside ps; group_beside_servers is true in a cluster
//                       without a chief task, whose worker 0 has the chief of
//                       the job at its address; a member has another purpose,
//                       cluster or implementation; two members with kNccl have
//                       the same GPU
//   kFailedPrecondition a member with kNccl has no NCCL, or no such GPU; names
//                       it, the reason and the fix
//   kUnavailable        the task's address is in use; a member has died
//                       meanwhile
//   kPermissionDenied   certificates do not name the tasks
//   kUnimplemented      a program of another kind, such as a server of a job,
//                       has the address of a member; names the address
//   kDeadlineExceeded   members did not start in time; names them
//   kAborted            a member has left or restarted meanwhile
//   others              the file or the certificates cannot be read
absl::StatusOr<std::unique_ptr<Collective>> JoinWorkers(
    const WorkersOptions& options, const std::string& purpose);

// True if this process keeps what all workers of TF_CONFIG's cluster compute:
// worker 0, an evaluator, which has a folder of its own, or a process without a
// cluster.
//
//   kInvalidArgument  TF_CONFIG is malformed
//   others            the file cannot be read
absl::StatusOr<bool> KeepsOutputs(const WorkersOptions& options);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_WORKERS_H_
