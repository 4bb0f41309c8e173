#include "common/memory/usable_memory.h"

#include <sys/sysinfo.h>

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/control_group.h"

namespace lockstep {

UsableMemory UsableMemory::OfThisProcess() {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  struct sysinfo host = {};
  if (sysinfo(&host) == 0) {
    bytes = (uint64_t{host.totalram} + host.totalswap) * host.mem_unit;
  }
  const std::optional<uint64_t> limit = LimitOfGroups(kMemoryOfGroup);
  if (limit.has_value() && *limit < bytes) {
    return {*limit,
            absl::StrCat("the control group of this process may use ", *limit,
                         " bytes of memory (MemoryMax of a "
                         "unit, limits.memory of a pod)")};
  }
  return {bytes, absl::StrCat("this host has ", bytes, " bytes of memory")};
}

}  // namespace lockstep
