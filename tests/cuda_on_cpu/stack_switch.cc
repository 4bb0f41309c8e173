#include "tests/cuda_on_cpu/stack_switch.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// This file is compiled without sanitizers, and told which one there is.
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LOCKSTEP_CUDA_ON_CPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// Saves the registers that a function must keep on the stack at hand, puts its
// pointer into *from, and goes on where the stack `to` was left.
extern "C" void lockstep_cuda_on_cpu_switch(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
.text
.globl lockstep_cuda_on_cpu_switch
.type lockstep_cuda_on_cpu_switch,@function
lockstep_cuda_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size lockstep_cuda_on_cpu_switch,.-lockstep_cuda_on_cpu_switch
)");
constexpr int kSavedRegisters = 6;
#else
#error "tests/cuda_on_cpu: write lockstep_cuda_on_cpu_switch for this processor"
#endif

namespace lockstep::cuda_on_cpu {
namespace {

#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
constexpr size_t kStackBytes = size_t{256} << 10;  // frames have more in them
#else
constexpr size_t kStackBytes = size_t{64} << 10;
#endif

thread_local StackSwitch* beginning = nullptr;

}  // namespace

StackSwitch::StackSwitch(Main main)
    : main_(main), stack_(new char[kStackBytes]) {
  auto top = reinterpret_cast<uintptr_t>(stack_.get() + kStackBytes);
  auto* place = reinterpret_cast<void**>(top / 16 * 16);
  // The end of the frames, and an odd number of words as after a call.
  for (int i = 0; i < 3; ++i) *--place = nullptr;
  *--place = reinterpret_cast<void*>(&StackSwitch::Begin);
  for (int i = 0; i < kSavedRegisters; ++i) *--place = nullptr;
  inside_ = place;
#ifdef LOCKSTEP_CUDA_ON_CPU_TSAN
  fiber_ = __tsan_create_fiber(0);
#endif
}

StackSwitch::~StackSwitch() {
#ifdef LOCKSTEP_CUDA_ON_CPU_TSAN
  __tsan_destroy_fiber(fiber_);
#endif
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  __asan_unpoison_memory_region(stack_.get(), kStackBytes);
#endif
}

void StackSwitch::Begin() {
  StackSwitch& self = *beginning;
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  __sanitizer_finish_switch_fiber(self.frames_, &self.outside_stack_,
                                  &self.outside_size_);
#endif
  self.main_(self);
  std::abort();
}

void StackSwitch::Enter() {
  beginning = this;
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  __sanitizer_start_switch_fiber(&outside_frames_, stack_.get(), kStackBytes);
#endif
#ifdef LOCKSTEP_CUDA_ON_CPU_TSAN
  outside_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
#endif
  lockstep_cuda_on_cpu_switch(&outside_, inside_);
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  __sanitizer_finish_switch_fiber(outside_frames_, nullptr, nullptr);
#endif
}

void StackSwitch::Leave() {
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  __sanitizer_start_switch_fiber(&frames_, outside_stack_, outside_size_);
#endif
#ifdef LOCKSTEP_CUDA_ON_CPU_TSAN
  __tsan_switch_to_fiber(outside_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
  lockstep_cuda_on_cpu_switch(&inside_, outside_);
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  __sanitizer_finish_switch_fiber(frames_, &outside_stack_, &outside_size_);
#endif
}

}  // namespace lockstep::cuda_on_cpu
