#ifndef LOCKSTEP_COMMON_MEMORY_SPARE_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_SPARE_MEMORY_H_

#include <cstddef>

namespace lockstep {

// How much of its own memory this process has, and needs.
struct HeapUse {
  size_t resident = 0;  // bytes in memory that no file backs
  size_t in_use = 0;    // bytes that were allocated and not freed
};

// Whether so much is kept for later that it should go back to the system. Some
// is worth keeping: see TuneProcess().
bool KeepsTooMuch(const HeapUse& use);

// Zeros where the system does not say.
HeapUse CurrentHeapUse();

// Gives back what the heap has free, but for what a few steps need.
void ReturnFreeMemory();

// Does so once a minute from here on, as long as the process lives, where
// KeepsTooMuch(): a spike is over then.
void ReturnFreeMemoryEveryMinute();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_SPARE_MEMORY_H_
