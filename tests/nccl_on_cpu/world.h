#ifndef LOCKSTEP_TESTS_NCCL_ON_CPU_WORLD_H_
#define LOCKSTEP_TESTS_NCCL_ON_CPU_WORLD_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::nccl_on_cpu {

// The part of a member in a collective operation, seen by its stream. It ends
// early when it is aborted.
struct Part {
  int rank = 0;
  const std::atomic<bool>* aborted = nullptr;
  bool hangs = false;
};

// Bytes from or to another member. Addresses are those of the device.
struct Message {
  int peer = 0;
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// World is the members that share a unique id, as their streams see them. Work
// waits for the other members' work; copies are made while the lock is held.
//
// Threads: safe to call from the threads of streams. Callers of the host take
// no lock of it, so that the thread sanitizer sees no order that NCCL does not
// promise.
class World {
 public:
  explicit World(int members) : members_(members) {}

  // Operation number `sequence` of each member: gives `bytes` from `from`, and
  // puts those of all members at `to`, by rank.
  void AllGather(const Part& part, uint64_t sequence, const std::byte* from,
                 std::byte* to, size_t bytes);

  void SendAndReceive(const Part& part, const std::vector<Message>& sends,
                      const std::vector<Message>& receives);

 private:
  struct Meeting {
    std::vector<const std::byte*> from;  // by rank
    size_t bytes = 0;
    int come = 0;
    int done = 0;
    bool broken = false;  // a member was aborted, or the calls differ
  };
  struct Mail {
    const std::byte* data;
    size_t bytes;
    bool taken = false;
  };

  // Waits until ready() is true; false: the part was aborted.
  template <typename Ready>
  bool Wait(std::unique_lock<std::mutex>& lock, const Part& part,
            const Ready& ready);
  bool Receive(std::unique_lock<std::mutex>& lock, const Part& part,
               const Message& message);

  const int members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Meeting> meetings_;
  // By sender and receiver.
  std::map<std::pair<int, int>, std::deque<Mail*>> mail_;
};

// Notes a mistake, if it is the first.
void NoteMistake(const char* text);

}  // namespace lockstep::nccl_on_cpu

#endif  // LOCKSTEP_TESTS_NCCL_ON_CPU_WORLD_H_
