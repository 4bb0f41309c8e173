#ifndef LOCKSTEP_COMMON_MEMORY_SPARE_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_SPARE_MEMORY_H_

#include <cstddef>

namespace lockstep {

// This process's own memory: how much it has, and how much it uses.
struct HeapUse {
  size_t resident = 0;  // bytes in memory that no file backs
  size_t in_use = 0;    // bytes that were allocated and not freed
};

// True if the process keeps so much unused memory that it should return some to
// the system. Some reserve is useful: see TuneProcess().
bool KeepsTooMuch(const HeapUse& use);

// Returns zeros if the system does not provide the figures.
HeapUse CurrentHeapUse();

// Returns free memory of the heap to the system, except for the needs of a few
// steps.
void ReturnFreeMemory();

// From now on calls ReturnFreeMemory() once a minute if KeepsTooMuch(), for the
// life of the process: by then a spike is over.
void ReturnFreeMemoryEveryMinute();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_SPARE_MEMORY_H_
