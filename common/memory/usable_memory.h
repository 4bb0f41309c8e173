#ifndef LOCKSTEP_COMMON_MEMORY_USABLE_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_USABLE_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// UsableMemory is what a process can fill before the kernel kills it: an
// allocation beyond it succeeds all the same.
struct UsableMemory {
  uint64_t bytes = 0;
  std::string source;  // for messages: "this host has 1024 bytes of memory"

  // Returns that of this process: the memory and swap of the host, or less
  // where its control group, or one above, had lower limits at the first call:
  // they are read once.
  static UsableMemory OfThisProcess();

  // The limits of control groups; nullopt: none.
  struct Limits {
    std::optional<uint64_t> memory = {};
    std::optional<uint64_t> swap = {};
    std::optional<uint64_t> memory_and_swap = {};
  };
  // Returns that of a process with these limits on a host with so many bytes.
  static UsableMemory Of(uint64_t memory, uint64_t swap, const Limits& limits);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_USABLE_MEMORY_H_
