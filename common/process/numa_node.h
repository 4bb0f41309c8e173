#ifndef LOCKSTEP_COMMON_PROCESS_NUMA_NODE_H_
#define LOCKSTEP_COMMON_PROCESS_NUMA_NODE_H_

#include "absl/status/status.h"

namespace lockstep {

constexpr int kAnyNumaNode = -1;

// Keeps all threads of this process, those to come too, on the processors of
// one NUMA node of the machine. Memory that they touch first is then the
// node's, as long as it has some. Call it before there is memory that matters;
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
