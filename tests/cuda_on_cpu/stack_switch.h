#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_STACK_SWITCH_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_STACK_SWITCH_H_

#include <cstddef>
#include <memory>

namespace lockstep::cuda_on_cpu {

// StackSwitch is a stack of its own in which `main` runs until it returns to
// the thread that entered it, and from there again and again. No system call is
// made, for a kernel changes its stack thousands of times.
//
// For the thread sanitizer each of them is a thread of its own, and switches
// order nothing.
//
// Threads: entered only by the thread that made it.
class StackSwitch {
 public:
  using Main = void (*)(StackSwitch& self);

  // `main` must not return.
  explicit StackSwitch(Main main);
  ~StackSwitch();
  StackSwitch(const StackSwitch&) = delete;
  StackSwitch& operator=(const StackSwitch&) = delete;

  // Returns when the inside calls Leave().
  void Enter();
  // On the inside: returns at the next Enter().
  void Leave();

 private:
  static void Begin();

  const Main main_;
  std::unique_ptr<char[]> stack_;
  void* inside_ = nullptr;  // stack pointers of the side that waits
  void* outside_ = nullptr;
  // For the thread sanitizer.
  [[maybe_unused]] void* fiber_ = nullptr;
  [[maybe_unused]] void* outside_fiber_ = nullptr;
  // For the address sanitizer.
  [[maybe_unused]] void* frames_ = nullptr;
  [[maybe_unused]] void* outside_frames_ = nullptr;
  [[maybe_unused]] const void* outside_stack_ = nullptr;
  [[maybe_unused]] size_t outside_size_ = 0;
};

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_STACK_SWITCH_H_
