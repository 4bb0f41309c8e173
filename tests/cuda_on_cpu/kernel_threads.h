#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_KERNEL_THREADS_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_KERNEL_THREADS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep::cuda_on_cpu {

struct Index3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

struct Size3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
};

// Where the thread of a kernel is that runs at present.
struct Position {
  Index3 thread;
  Index3 block;
  Size3 block_size;
  Size3 grid_size;
};

const Position& CurrentPosition();

// The threads of a launch.
struct GridShape {
  const char* name;  // of the kernel
  Size3 grid;
  Size3 block;
  size_t shared_bytes;  // that DynamicShared() has
};

// Calls body() as each thread of each block, in an order that follows from
// `seed`: blocks one after the other, and the threads of a block beside each
// other, each until it waits for others. Ends the process with words where
// threads wait for each other in vain.
//
// Threads: several grids may run at a time, each in a thread of its own.
void RunGrid(const GridShape& shape, uint64_t seed,
             const std::function<void()>& body);

// For the threads of a kernel:

// Returns once all threads of the block that have not returned are here.
void BlockBarrier();

// Gives `value` to the warp and returns that of lane `from`, once all lanes of
// `mask` are here.
uint64_t Exchange(unsigned mask, uint64_t value, unsigned from);

// Gives `value` to the warp and returns those of its 32 lanes, once all are
// here. They are good until this thread's next exchange but one.
const uint64_t* ExchangeAll(uint64_t value);

// The lane of this thread within its warp.
unsigned Lane();

// Shared memory that a block declares: full of NaN for the first thread that
// comes by.
void BeginShared(void* memory, size_t bytes);

// The shared memory that the launch asked for, at a multiple of 64 bytes; NaN
// as in BeginShared().
void* DynamicShared();

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_KERNEL_THREADS_H_
