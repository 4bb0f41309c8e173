#include "common/memory/write_counters.h"

#include <atomic>

#include "common/base/status_macros.h"

namespace lockstep {
namespace {

using Counter = std::atomic<uint64_t>;
// Zeroed memory must be a valid counter, and processes must see each other's
// counts.
static_assert(Counter::is_always_lock_free &&
              sizeof(Counter) == sizeof(uint64_t));

const Counter& CounterAt(const std::byte* counters, int counter) {
  return reinterpret_cast<const Counter*>(counters)[counter];
}

}  // namespace

absl::StatusOr<std::unique_ptr<WriteCounters>> WriteCounters::Create(
    int num_buffers) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<SharedMemory> memory,
      SharedMemory::Create("lockstep-writes", num_buffers * sizeof(Counter)));
  return std::unique_ptr<WriteCounters>(new WriteCounters(std::move(memory)));
}

void WriteCounters::Begin(int buffer) {
  // Visible to all processes before any later write, streaming stores too.
  reinterpret_cast<Counter*>(memory_->bytes().data())[buffer].fetch_add(
      1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

uint64_t WriteCounters::Count(int buffer) const {
  return CounterAt(memory_->bytes().data(), buffer)
      .load(std::memory_order_relaxed);
}

bool HasCounter(const PeerMemory& counters, int counter) {
  return counter >= 0 &&
         counters.Holds(SharedMemory::kHeaderSize +
                            static_cast<uint64_t>(counter) * sizeof(Counter),
                        sizeof(Counter));
}

bool WrittenSince(const PeerMemory& counters, int counter, uint64_t count) {
  // Orders the reads of the copy before the read of the counter.
  std::atomic_thread_fence(std::memory_order_acquire);
  return CounterAt(counters.bytes().data() + SharedMemory::kHeaderSize, counter)
             .load(std::memory_order_relaxed) != count;
}

}  // namespace lockstep
