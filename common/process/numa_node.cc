#include "common/process/numa_node.h"

#include <numa.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {
namespace {

using Mask = std::unique_ptr<bitmask, decltype(&numa_bitmask_free)>;

bool HasProcessors(int node, bitmask& processors) {
  // numa_all_nodes_ptr has the nodes that this process may use.
  return numa_bitmask_isbitset(numa_all_nodes_ptr, node) != 0 &&
         numa_node_to_cpus(node, &processors) == 0 &&
         numa_bitmask_weight(&processors) > 0;
}

std::vector<int> NodesWithProcessors() {
  const Mask processors(numa_allocate_cpumask(), numa_bitmask_free);
  std::vector<int> nodes;
  for (int node = 0; node <= numa_max_node(); ++node) {
    if (HasProcessors(node, *processors)) nodes.push_back(node);
  }
  return nodes;
}

// Returns all threads of the process: libraries may have started threads before
// main.
std::vector<int> Threads() {
  // 0 stands for the calling thread, in case /proc is not mounted.
  std::vector<int> threads = {0};
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/task", error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    int id = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &id)) {
      threads.push_back(id);
    }
    entry.increment(error);
  }
  return threads;
}

absl::Status Refused(int node, int error) {
  const std::string what = absl::StrCat("--numa_node=", node, ": ");
  if (error == EPERM) {
    return absl::FailedPreconditionError(absl::StrCat(
        what,
        "this process may not choose its processors; where systemd started it, "
        "set NUMAPolicy=, NUMAMask= and CPUAffinity=numa there instead"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, "this process may use none of its processors (",
                   std::strerror(error), "); choose another node"));
}

}  // namespace

absl::Status StayOnNumaNode(int node) {
  if (node == kAnyNumaNode) return absl::OkStatus();
  if (numa_available() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--numa_node=", node,
                     ": the kernel has no NUMA, or this container may not use "
                     "it; leave the flag out"));
  }
  const Mask processors(numa_allocate_cpumask(), numa_bitmask_free);
  if (node < 0 || node > numa_max_node() || !HasProcessors(node, *processors)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--numa_node=", node,
        ": the nodes with processors that this process may use are ",
        absl::StrJoin(NodesWithProcessors(), ", ")));
  }
  for (const int thread : Threads()) {
    if (numa_sched_setaffinity(thread, processors.get()) >= 0) continue;
    if (errno == ESRCH) continue;  // the thread has ended
    return Refused(node, errno);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
