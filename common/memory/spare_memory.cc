#include "common/memory/spare_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {
namespace {

// Freed memory up to the size in use, and this much, is kept for the next step.
constexpr size_t kWorthKeeping = size_t{512} << 20;
// The huge pages of TuneProcess(), which are lost if the heap shrinks below
// them.
constexpr size_t kTop = size_t{256} << 20;

// glibc sets up its heap in the first call of any of these functions, without a
// lock. In a process with the heap of a sanitizer, that is a call of this file.
Mutex& HeapMutex() {
  // Never destroyed: threads may call until the process ends.
  static Mutex& mutex = *new Mutex;
  return mutex;
}

}  // namespace

bool KeepsTooMuch(const HeapUse& use) {
  return use.resident > 2 * use.in_use + kWorthKeeping;
}

HeapUse CurrentHeapUse() {
  HeapUse use;
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    size_t kibibytes = 0;
    if (word == "RssAnon:" && file >> kibibytes) use.resident = kibibytes << 10;
  }
  MutexLock lock(HeapMutex());
  const struct mallinfo2 heap = mallinfo2();
  use.in_use = heap.uordblks + heap.hblkhd;
  return use;
}

void ReturnFreeMemory() {
  MutexLock lock(HeapMutex());
  malloc_trim(kTop);
}

void ReturnFreeMemoryEveryMinute() {
  std::thread([] {
    while (true) {
      absl::SleepFor(absl::Minutes(1));
      if (KeepsTooMuch(CurrentHeapUse())) ReturnFreeMemory();
    }
  }).detach();
}

}  // namespace lockstep
