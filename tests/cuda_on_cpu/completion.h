#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_COMPLETION_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_COMPLETION_H_

#include <sched.h>
#include <time.h>

#include <atomic>

namespace lockstep::cuda_on_cpu {

// Completion is a point in a stream that others wait for. It orders the work
// before it in its stream before the work after a wait, and nothing else: the
// thread sanitizer sees the order that CUDA promises, no more.
//
// Owns: none is ever freed, because to count references would be such an order.
class Completion {
 public:
  static Completion* Make();

  void Set() { done_.store(true, std::memory_order_release); }
  bool IsSet() const { return done_.load(std::memory_order_acquire); }
  void Wait() const {
    for (int i = 0; !IsSet(); ++i) {
      if (i < 64) {
        sched_yield();
      } else {
        const timespec pause = {0, 20'000};
        nanosleep(&pause, nullptr);
      }
    }
  }

 private:
  Completion() = default;

  std::atomic<bool> done_ = false;
};

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_COMPLETION_H_
