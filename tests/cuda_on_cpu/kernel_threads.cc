#include "tests/cuda_on_cpu/kernel_threads.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/stack_switch.h"

#if defined(LOCKSTEP_CUDA_ON_CPU_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// This file is compiled without sanitizers: its notes on threads are written by
// all of them, and would look like races between them.
namespace lockstep::cuda_on_cpu {
namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kMaxThreads = 1024;  // of a block

// Tell the thread sanitizer of the order that a barrier makes.
void Release([[maybe_unused]] void* barrier) {
#if defined(LOCKSTEP_CUDA_ON_CPU_TSAN)
  __tsan_release(barrier);
#endif
}
void Acquire([[maybe_unused]] void* barrier) {
#if defined(LOCKSTEP_CUDA_ON_CPU_TSAN)
  __tsan_acquire(barrier);
#endif
}

// One block at a time, in this thread.
class Block {
 public:
  // A vector that grows calls memmove(), which the thread sanitizer sees.
  Block() {
    idle_.reserve(kMaxThreads);
    shared_.reserve(kMaxThreads);
  }

  static Block& OfThread() {
    thread_local Block block;
    return block;
  }

  // Gives the blocks that run from now on so much shared memory.
  void SetDynamicShared(size_t bytes);
  void Run(const char* name, const Position& first, uint64_t seed,
           const std::function<void()>& body);
  void WaitForBlock();
  const uint64_t* Exchange(unsigned mask, uint64_t value);
  void BeginShared(void* memory, size_t bytes);
  void* DynamicShared();

  const Position& position() const { return position_; }
  unsigned lane() const { return current_ % kWarp; }

 private:
  enum class State {
    kNotBegun,
    kCanGoOn,
    kAtBlockBarrier,
    kAtWarpBarrier,
    kOver
  };

  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  struct Thread {
    State state = State::kNotBegun;
    StackSwitch* stack = nullptr;
    unsigned exchanges = 0;
  };
  struct Warp {
    unsigned here = 0;  // a bit for each lane that has come
    unsigned mask = 0;
    uint64_t values[2][kWarp] = {};
  };

  static void Main(StackSwitch& self);
  void RunThreads(StackSwitch& self);
  void Leave(State state);
  void GoOn(unsigned thread);
  void LeaveBlockBarrier();
  [[noreturn]] void FailAsStuck() const;

  Position position_;
  const char* name_ = "";
  const std::function<void()>* body_ = nullptr;
  std::vector<unsigned> order_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  unsigned begun_ = 0;  // of order_
  unsigned over_ = 0;
  unsigned at_barrier_ = 0;
  unsigned current_ = 0;
  std::vector<std::unique_ptr<StackSwitch>> stacks_;
  std::vector<StackSwitch*> idle_;
  std::vector<void*> shared_;
  std::unique_ptr<Line[]> dynamic_shared_;
  size_t dynamic_bytes_ = 0;
  char barrier_ = 0;  // its address is the barrier's, for Release()
  char edge_ = 0;     // that of the beginning and end of a block
};

// A stack runs thread after thread until one waits; then that stack is its
// own. So kernels without barriers take one stack and no switch.
void Block::Main(StackSwitch& self) {
  for (;;) {
    OfThread().RunThreads(self);
    self.Leave();
  }
}

void Block::RunThreads(StackSwitch& self) {
  Acquire(&edge_);
  while (begun_ < order_.size()) {
    const unsigned thread = order_[begun_++];
    threads_[thread].stack = &self;
    GoOn(thread);
    (*body_)();
    threads_[current_].state = State::kOver;
    ++over_;
    // One that waited before goes on no further than its own end.
    if (at_barrier_ > 0 && at_barrier_ + over_ == threads_.size()) {
      LeaveBlockBarrier();
    }
  }
  Release(&edge_);
  idle_.push_back(&self);
}

void Block::GoOn(unsigned thread) {
  current_ = thread;
  const Size3& size = position_.block_size;
  position_.thread = {thread % size.x, thread / size.x % size.y,
                      thread / size.x / size.y};
}

void Block::Leave(State state) {
  const unsigned thread = current_;
  threads_[thread].state = state;
  threads_[thread].stack->Leave();
}

void Block::LeaveBlockBarrier() {
  at_barrier_ = 0;
  for (Thread& thread : threads_) {
    if (thread.state == State::kAtBlockBarrier) thread.state = State::kCanGoOn;
  }
}

void Block::WaitForBlock() {
  Release(&barrier_);
  ++at_barrier_;
  if (at_barrier_ + over_ == threads_.size()) {
    LeaveBlockBarrier();
  } else {
    Leave(State::kAtBlockBarrier);
  }
  Acquire(&barrier_);
}

const uint64_t* Block::Exchange(unsigned mask, uint64_t value) {
  const unsigned number = current_ / kWarp;
  const unsigned lane = current_ % kWarp;
  Warp& warp = warps_[number];
  // The values of one exchange are not overwritten before the next but one.
  uint64_t* values = warp.values[threads_[current_].exchanges++ % 2];
  values[lane] = value;
  const unsigned there =
      static_cast<unsigned>(threads_.size()) - number * kWarp;
  const unsigned lanes = there >= kWarp ? ~0u : (1u << there) - 1;
  if ((mask & 1u << lane) == 0 || (mask & ~lanes) != 0 ||
      (warp.here != 0 && warp.mask != mask)) {
    std::fprintf(stderr,
                 "cuda_on_cpu: kernel %s: thread %u of block (%u,%u,%u) takes "
                 "part in a shuffle of lanes %08x, which is not that of its "
                 "warp\n",
                 name_, current_, position_.block.x, position_.block.y,
                 position_.block.z, mask);
    std::abort();
  }
  Release(&warp);
  warp.mask = mask;
  warp.here |= 1u << lane;
  if (warp.here == mask) {
    warp.here = 0;
    for (unsigned i = 0; i < kWarp && number * kWarp + i < threads_.size();
         ++i) {
      Thread& thread = threads_[number * kWarp + i];
      if (thread.state == State::kAtWarpBarrier) thread.state = State::kCanGoOn;
    }
  } else {
    Leave(State::kAtWarpBarrier);
  }
  Acquire(&warp);
  return values;
}

void Block::BeginShared(void* memory, size_t bytes) {
  if (std::find(shared_.begin(), shared_.end(), memory) != shared_.end()) {
    return;
  }
  shared_.push_back(memory);
  // Not memset(), which the thread sanitizer would see.
  auto* out = static_cast<volatile unsigned char*>(memory);
  for (size_t i = 0; i < bytes; ++i) out[i] = 0xff;
}

// New for each launch, so that the address sanitizer sees its end.
void Block::SetDynamicShared(size_t bytes) {
  dynamic_bytes_ = bytes;
  dynamic_shared_.reset(
      bytes == 0 ? nullptr
                 : new Line[(bytes + sizeof(Line) - 1) / sizeof(Line)]);
}

void* Block::DynamicShared() {
  BeginShared(dynamic_shared_.get(), dynamic_bytes_);
  return dynamic_shared_.get();
}

void Block::FailAsStuck() const {
  std::string words;
  const char* const kWords[] = {" has not begun", " can go on",
                                " is in __syncthreads", " is in a shuffle",
                                " has returned"};
  for (size_t i = 0; i < threads_.size() && words.size() < 500; ++i) {
    if (i > 0 && threads_[i].state == threads_[i - 1].state) continue;
    words +=
        ", " + std::to_string(i) + kWords[static_cast<int>(threads_[i].state)];
  }
  std::fprintf(stderr,
               "cuda_on_cpu: kernel %s: the threads of block (%u,%u,%u) wait "
               "for each other in vain; from thread%s\n",
               name_, position_.block.x, position_.block.y, position_.block.z,
               words.c_str() + 1);
  std::abort();
}

void Block::Run(const char* name, const Position& first, uint64_t seed,
                const std::function<void()>& body) {
  const auto count = static_cast<unsigned>(first.block_size.count());
  position_ = first;
  name_ = name;
  body_ = &body;
  begun_ = over_ = at_barrier_ = 0;
  threads_.assign(count, {});
  warps_.assign((count + kWarp - 1) / kWarp, {});
  shared_.clear();
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0u);
  if (seed % 2 == 1) std::reverse(order_.begin(), order_.end());
  Release(&edge_);
  while (over_ < count) {
    if (begun_ < count) {
      if (idle_.empty()) {
        stacks_.push_back(std::make_unique<StackSwitch>(&Main));
        idle_.push_back(stacks_.back().get());
      }
      StackSwitch* stack = idle_.back();
      idle_.pop_back();
      stack->Enter();
      continue;
    }
    bool any = false;
    for (const unsigned thread : order_) {
      if (threads_[thread].state != State::kCanGoOn) continue;
      any = true;
      GoOn(thread);
      threads_[thread].stack->Enter();
    }
    if (!any) FailAsStuck();
  }
  Acquire(&edge_);
}

}  // namespace

const Position& CurrentPosition() { return Block::OfThread().position(); }

void RunGrid(const GridShape& shape, uint64_t seed,
             const std::function<void()>& body) {
  Block& runner = Block::OfThread();
  const Size3& grid = shape.grid;
  Position position = {{}, {}, shape.block, grid};
  runner.SetDynamicShared(shape.shared_bytes);
  for (uint64_t i = 0; i < grid.count(); ++i) {
    position.block = {static_cast<unsigned>(i % grid.x),
                      static_cast<unsigned>(i / grid.x % grid.y),
                      static_cast<unsigned>(i / grid.x / grid.y)};
    runner.Run(shape.name, position, seed >> (i % 64), body);
  }
}

void BlockBarrier() { Block::OfThread().WaitForBlock(); }

uint64_t Exchange(unsigned mask, uint64_t value, unsigned from) {
  return Block::OfThread().Exchange(mask, value)[from % kWarp];
}

const uint64_t* ExchangeAll(uint64_t value) {
  return Block::OfThread().Exchange(~0u, value);
}

unsigned Lane() { return Block::OfThread().lane(); }

void BeginShared(void* memory, size_t bytes) {
  Block::OfThread().BeginShared(memory, bytes);
}

void* DynamicShared() { return Block::OfThread().DynamicShared(); }

}  // namespace lockstep::cuda_on_cpu
