#include "tests/conformance/simulation/fiber.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_FIBER_ASAN 1
#define LOCKSTEP_FIBER_SWAPS 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define LOCKSTEP_FIBER_TSAN 1
#define LOCKSTEP_FIBER_SWAPS 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace lockstep::simulation {
namespace {

#ifdef LOCKSTEP_FIBER_ASAN
constexpr size_t kStackSize = size_t{1} << 20;  // frames have more in them
#else
constexpr size_t kStackSize = size_t{256} << 10;
#endif

// Stacks are used again, so that each is cleared by the kernel only once.
std::vector<std::unique_ptr<char[]>>& FreeStacks() {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

std::unique_ptr<char[]> TakeStack() {
  auto& stacks = FreeStacks();
  if (stacks.empty()) return std::unique_ptr<char[]>(new char[kStackSize]);
  std::unique_ptr<char[]> stack = std::move(stacks.back());
  stacks.pop_back();
#ifdef LOCKSTEP_FIBER_ASAN
  // The frame that left it for good was never cleaned up.
  ASAN_UNPOISON_MEMORY_REGION(stack.get(), kStackSize);
#endif
  return stack;
}

}  // namespace

// Sanitizers follow a change of stacks by swapcontext() that they are told of.
// What changes the fiber of the thread sanitizer must be part of the function
// that changes the stack: a function that returned in between would leave the
// other's frames.
class Fiber::Sanitizer {
 public:
  explicit Sanitizer(char* stack) : stack_(stack) {}
#ifdef LOCKSTEP_FIBER_TSAN
  ~Sanitizer() { __tsan_destroy_fiber(fiber_); }
#else
  ~Sanitizer() = default;
#endif
  Sanitizer(const Sanitizer&) = delete;
  Sanitizer& operator=(const Sanitizer&) = delete;

  [[gnu::always_inline]] void BeforeResume() {
#ifdef LOCKSTEP_FIBER_ASAN
    __sanitizer_start_switch_fiber(&resumer_frames_, stack_, kStackSize);
#endif
#ifdef LOCKSTEP_FIBER_TSAN
    resumer_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
#endif
  }
  void AfterResume() {
#ifdef LOCKSTEP_FIBER_ASAN
    __sanitizer_finish_switch_fiber(resumer_frames_, nullptr, nullptr);
#endif
  }
  // `last`: the fiber does not come back.
  [[gnu::always_inline]] void BeforePause([[maybe_unused]] bool last) {
#ifdef LOCKSTEP_FIBER_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &frames_, resumer_stack_,
                                   resumer_size_);
#endif
#ifdef LOCKSTEP_FIBER_TSAN
    __tsan_switch_to_fiber(resumer_, 0);
#endif
  }
  void AfterPause() {
#ifdef LOCKSTEP_FIBER_ASAN
    __sanitizer_finish_switch_fiber(frames_, &resumer_stack_, &resumer_size_);
#endif
  }

 private:
  [[maybe_unused]] char* const stack_;
#ifdef LOCKSTEP_FIBER_ASAN
  void* frames_ = nullptr;  // none before the first switch
  void* resumer_frames_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_size_ = 0;
#endif
#ifdef LOCKSTEP_FIBER_TSAN
  void* const fiber_ = __tsan_create_fiber(0);
  void* resumer_ = nullptr;
#endif
};

// Returns when `from` is the place to go on at. swapcontext() alone would do,
// but makes a system call each time.
#ifdef LOCKSTEP_FIBER_SWAPS
[[gnu::always_inline]] inline void Fiber::Switch(Place& from, Place& to, bool) {
  swapcontext(&from.context, &to.context);
}
#else
void Fiber::Switch(Place& from, Place& to, bool to_begins) {
  if (_setjmp(from.jump) != 0) return;
  if (to_begins) setcontext(&to.context);
  _longjmp(to.jump, 1);
}
#endif

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)),
      stack_(TakeStack()),
      sanitizer_(std::make_unique<Sanitizer>(stack_.get())) {
  ucontext_t& context = self_.context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_.get();
  context.uc_stack.ss_size = kStackSize;
  context.uc_link = nullptr;  // Main() does not return
  const auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::Main), 2,
              static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

Fiber::~Fiber() {
  Kill();
  FreeStacks().push_back(std::move(stack_));
}

void Fiber::Main(unsigned high, unsigned low) {
  auto* fiber =
      reinterpret_cast<Fiber*>((static_cast<uintptr_t>(high) << 32) | low);
  fiber->sanitizer_->AfterPause();
  try {
    if (!fiber->killed_) fiber->body_();
  } catch (const Killed&) {
  }
  fiber->done_ = true;
  fiber->sanitizer_->BeforePause(/*last=*/true);
  Switch(fiber->self_, fiber->resumer_, /*to_begins=*/false);
}

void Fiber::Resume() {
  if (done_) return;
  sanitizer_->BeforeResume();
  Switch(resumer_, self_, /*to_begins=*/!std::exchange(begun_, true));
  sanitizer_->AfterResume();
}

void Fiber::Pause() {
  sanitizer_->BeforePause(/*last=*/false);
  Switch(self_, resumer_, /*to_begins=*/false);
  sanitizer_->AfterPause();
  if (killed_) throw Killed();
}

void Fiber::Kill() {
  killed_ = true;
  Resume();
}

}  // namespace lockstep::simulation
