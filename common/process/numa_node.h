#ifndef LOCKSTEP_COMMON_PROCESS_NUMA_NODE_H_
#define LOCKSTEP_COMMON_PROCESS_NUMA_NODE_H_

#include "absl/status/status.h"

namespace lockstep {

constexpr int kAnyNumaNode = -1;

// Restricts all threads of this process, including later ones, to the
// processors of one NUMA node. Memory that they touch first then comes from
// that node while it has free memory. Must be called before large allocations;
// kAnyNumaNode changes nothing.
//
//   kInvalidArgument     there is no such node, or it has no processors; says
//                        which there are
//   kFailedPrecondition  the kernel has no NUMA, or a container hides it; or
//                        this process may use none of the node's processors,
//                        or not choose, as in the sandbox of our systemd units
absl::Status StayOnNumaNode(int node);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_NUMA_NODE_H_
