#include "tests/conformance/simulation/fiber.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::simulation {
namespace {

constexpr size_t kStackSize = size_t{256} << 10;

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
  return stack;
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(TakeStack()) {
  getcontext(&self_);
  self_.uc_stack.ss_sp = stack_.get();
  self_.uc_stack.ss_size = kStackSize;
  self_.uc_link = &resumer_;
  const auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(&self_, reinterpret_cast<void (*)()>(&Fiber::Main), 2,
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
  try {
    if (!fiber->killed_) fiber->body_();
  } catch (const Killed&) {
  }
  fiber->done_ = true;
}

void Fiber::Resume() {
  if (!done_) swapcontext(&resumer_, &self_);
}

void Fiber::Pause() {
  swapcontext(&self_, &resumer_);
  if (killed_) throw Killed();
}

void Fiber::Kill() {
  killed_ = true;
  Resume();
}

}  // namespace lockstep::simulation
