#include "common/memory/usable_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/control_group.h"

namespace lockstep {
namespace {

UsableMemory Read() {
  uint64_t memory = std::numeric_limits<uint64_t>::max();
  uint64_t swap = 0;
  struct sysinfo host = {};
  if (sysinfo(&host) == 0) {
    memory = uint64_t{host.totalram} * host.mem_unit;
    swap = uint64_t{host.totalswap} * host.mem_unit;
  }
  return UsableMemory::Of(
      memory, swap,
      {LimitOfGroups(kMemoryOfGroup), LimitOfGroups(kSwapOfGroup),
       LimitOfGroups(kMemoryAndSwapOfGroup)});
}

}  // namespace

UsableMemory UsableMemory::Of(uint64_t memory, uint64_t swap,
                              const Limits& limits) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  // A group that has filled its memory goes on in the swap that it may use.
  const uint64_t allowed =
      std::min(std::min(memory, limits.memory.value_or(kNone)) +
                   std::min(swap, limits.swap.value_or(kNone)),
               limits.memory_and_swap.value_or(kNone));
  if (allowed < memory + swap) {
    return {allowed,
            absl::StrCat("the control group of this process may use ", allowed,
                         " bytes of memory and swap (MemoryMax of a unit, "
                         "limits.memory of a pod)")};
  }
  return {allowed, absl::StrCat("this host has ", allowed, " bytes of memory")};
}

UsableMemory UsableMemory::OfThisProcess() {
  // Never destroyed: threads may still ask while the process ends.
  static const UsableMemory& usable = *new UsableMemory(Read());
  return usable;
}

}  // namespace lockstep
