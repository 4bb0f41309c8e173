#ifndef LOCKSTEP_STRATEGY_VALUES_OPTIONS_H_
#define LOCKSTEP_STRATEGY_VALUES_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
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
  // that TrainedBy trains lie on the servers, which combine the gradients of
  // all workers, and the copies follow them. All else is of the replicas of
  // this process, or of all workers of a group: see Strategy::Join().
  kParameterServer,
};

// True if there is a single replica, whose variables have one copy.
inline bool IsOfOneReplica(Kind kind) {
  return kind == Kind::kDefault || kind == Kind::kOneDevice;
}

// True if the replicas of a process share one copy of each variable.
inline bool HasOneCopy(Kind kind) { return kind == Kind::kCentral; }

struct StrategyOptions {
  Kind kind = Kind::kMirrored;
  int replicas = 1;  // of this process; must be equal at all workers
  // A name for each replica, for messages; empty: "cpu:0", "cpu:1", ...
  std::vector<std::string> devices;
  // kRing gives TensorFlow's bits: sums around a ring where TensorFlow takes
  // them so. Must be equal at all workers. Like TensorFlow, it then refuses
  // int32 beside other values of one call or batch under kMirrored.
  SumOrder order = SumOrder::kRank;

  //   kInvalidArgument  `replicas` is below 1, above 1 for a kind with one
  //                     replica, or not the number of `devices`; a device is
  //                     named twice or has no name
  absl::Status Validate() const;
};

// Options of one reduction or gathering.
struct CommunicationOptions {
  // Present: the values of the call are joined to packs, and a new pack begins
  // when the current one has more bytes than this; 0: one pack. Absent: each
  // value travels alone. Only sums around a ring depend on it, in their last
  // bits.
  std::optional<int64_t> bytes_per_pack = {};
  // How long the call waits for the other workers; 0: without limit. Absent:
  // WorkersOptions::timeout. A call that waits longer returns kDeadlineExceeded
  // and ends the group, as any call that misses a timeout does. It has no
  // effect on replicas of one process, which wait for each other without a
  // limit.
  std::optional<absl::Duration> timeout = {};

  // The timeout of a group of workers for the call: absent as above.
  std::optional<absl::Duration> GroupTimeout() const;

  //   kInvalidArgument  bytes_per_pack or timeout is negative
  absl::Status Validate() const;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_OPTIONS_H_
