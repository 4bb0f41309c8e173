#ifndef LOCKSTEP_COMMON_MEMORY_USABLE_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_USABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace lockstep {

// UsableMemory is what a process can fill before the kernel kills it: an
// allocation beyond it succeeds all the same.
struct UsableMemory {
  uint64_t bytes = 0;
  std::string source;  // for messages: "this host has 1024 bytes of memory"

  // Returns that of this process: the memory and swap of the host, or less
  // where its control group, or one above, has a lower limit.
  static UsableMemory OfThisProcess();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_USABLE_MEMORY_H_
