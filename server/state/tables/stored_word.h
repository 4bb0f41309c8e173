#ifndef LOCKSTEP_SERVER_STATE_TABLES_STORED_WORD_H_
#define LOCKSTEP_SERVER_STATE_TABLES_STORED_WORD_H_

#include <atomic>
#include <cstdint>

namespace lockstep::server {

// Writes a word of a state file after all earlier writes and before all later
// ones, as seen by a process that finds the file after this one was killed. No
// other process reads it before, so it is enough to keep the compiler from
// moving stores.
inline void StoreWord(int64_t* to, int64_t value) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_ref<int64_t>(*to).store(value);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_TABLES_STORED_WORD_H_
