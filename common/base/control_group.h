#ifndef LOCKSTEP_COMMON_BASE_CONTROL_GROUP_H_
#define LOCKSTEP_COMMON_BASE_CONTROL_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// GroupLimit names the file in which a control group has a limit: that of the
// unified hierarchy (cgroup v2), and that of a controller's own hierarchy (v1);
// empty where the version has no such limit.
struct GroupLimit {
  const char* file = "";
  const char* controller = "";
  const char* controller_file = "";
};

// Set by MemoryMax= of a unit and by limits.memory of a pod.
inline constexpr GroupLimit kMemoryOfGroup = {"memory.max", "memory",
                                              "memory.limit_in_bytes"};
// Set by MemorySwapMax= of a unit. A hierarchy of version 1 limits the sum of
// memory and swap instead.
inline constexpr GroupLimit kSwapOfGroup = {"memory.swap.max", "memory", ""};
inline constexpr GroupLimit kMemoryAndSwapOfGroup = {
    "", "memory", "memory.memsw.limit_in_bytes"};
// Set by TasksMax= of a unit and by the limit of processes of a pod.
inline constexpr GroupLimit kTasksOfGroup = {"pids.max", "pids", "pids.max"};

// Returns the smallest such limit of this process's control group and of those
// above it, or nullopt if none of them has one that can be read.
// `groups` lists the groups of a process, and `mount` is where their
// hierarchies are mounted.
std::optional<uint64_t> LimitOfGroups(
    const GroupLimit& limit, const std::string& groups = "/proc/self/cgroup",
    const std::string& mount = "/sys/fs/cgroup");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CONTROL_GROUP_H_
