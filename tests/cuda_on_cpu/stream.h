#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_STREAM_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_STREAM_H_

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <random>

#include "tests/cuda_on_cpu/completion.h"

namespace lockstep::cuda_on_cpu {

// A device, as its streams see it.
struct DeviceState {
  // Not cudaSuccess: the device is lost, and nothing runs on it any more.
  std::atomic<int> lost = 0;
};

// Delays are the waits of a stream before its operations. Some streams are
// quick, some slow, and some change, so that in some order of streams each of
// two operations is the first.
class Delays {
 public:
  explicit Delays(uint64_t seed) : random_(seed), none_(seed == 0) {
    pace_ = none_ ? 0 : random_() % 3;
  }

  void Wait();
  // For the order of threads and the like; 0 without delays.
  uint64_t Random() { return none_ ? 0 : random_(); }

 private:
  std::mt19937_64 random_;
  const bool none_;
  uint64_t pace_ = 0;
};

// StreamThread runs operations one after the other in a thread of its own.
//
// The thread takes no lock that a caller takes, so that the thread sanitizer
// sees only the orders that CUDA promises: an operation comes after the call
// that queued it, and after the operation before.
//
// Threads: Push() is called by one thread at a time.
class StreamThread {
 public:
  using Run = std::function<void(Delays&)>;

  // `device` must stay.
  StreamThread(DeviceState& device, uint64_t seed);
  // Returns at once; queued operations still run.
  ~StreamThread();
  StreamThread(const StreamThread&) = delete;
  StreamThread& operator=(const StreamThread&) = delete;

  // Queues work, which is skipped if the device is lost by then.
  void Push(Run run);
  // Queues a point that is set even then.
  Completion* PushPoint();
  // Later operations wait for a point.
  void PushWait(Completion* point);

 private:
  struct Operation;
  struct Queue;
  static void Loop(Queue* queue);

  void Append(Operation* operation);

  Queue* const queue_;  // the thread's, which frees it
};

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_STREAM_H_
