#ifndef LOCKSTEP_STRATEGY_VALUES_OPTIONS_H_
#define LOCKSTEP_STRATEGY_VALUES_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/collective/reduction.h"

namespace lockstep::strategy {

enum class Kind {
  kDefault,              // no strategy: one replica
  kOneDevice,            // one replica
  kMirrored,             // the replicas of one process
  kMultiWorkerMirrored,  // the replicas of several workers
  // The replicas of one process; each variable has one copy, on a device of its
  // own, as with parameter servers.
  kCentral,
  // As kMirrored, in a worker of a job with parameter servers: the variables
  // that TrainedBy trains lie on the servers, and the copies follow them. The
  // replicas are those of this process; the servers combine the gradients of
  // all workers.
  kParameterServer,
};

// Whether there is a single replica, whose variables have one copy.
inline bool IsOfOneReplica(Kind kind) {
  return kind == Kind::kDefault || kind == Kind::kOneDevice;
}

// Whether a process has one copy of each variable, which its replicas share.
inline bool HasOneCopy(Kind kind) { return kind == Kind::kCentral; }

struct StrategyOptions {
  Kind kind = Kind::kMirrored;
  int replicas = 1;  // of this process; all workers must have as many
  // A name for each replica, for messages; empty: "cpu:0", "cpu:1", ...
  std::vector<std::string> devices;
  // kRing has TensorFlow's bits: rings where TensorFlow has rings, and its
  // refusal of int32 beside other values of a call under kMirrored.
  SumOrder order = SumOrder::kRank;

  //   kInvalidArgument  replicas below 1, above 1 for a kind that has one, or
  //                     not as many as devices; a device twice or without name
  absl::Status Validate() const;
};

// How values travel. Every call may have its own.
struct CommunicationOptions {
  // Present: the values of one call are joined to packs, and a new pack begins
  // when the running one has more bytes; 0: one pack. Absent: each value
  // travels alone. Only sums in the order of a ring depend on it.
  std::optional<int64_t> bytes_per_pack;

  //   kInvalidArgument  bytes_per_pack is negative
  absl::Status Validate() const;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_OPTIONS_H_
