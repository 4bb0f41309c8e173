#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_LAUNCH_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "tests/cuda_on_cpu/kernel_arguments.h"
#include "tests/cuda_on_cpu/kernel_threads.h"

// What rewrite_kernels.sh makes of a launch and of shared memory.
#define LOCKSTEP_CUDA_ON_CPU_LAUNCH(kernel, ...) \
  ::lockstep::cuda_on_cpu::Launcher(             \
      [](auto... arguments) { kernel(arguments...); }, #kernel, __VA_ARGS__)
// A kernel by its address.
#define LOCKSTEP_CUDA_ON_CPU_LAUNCH_ADDRESS(kernel, ...)                     \
  ::lockstep::cuda_on_cpu::Launcher(                                         \
      [](auto... arguments) { kernel(arguments...); }, #kernel, __VA_ARGS__) \
      .Of(reinterpret_cast<const void*>(kernel))
#define LOCKSTEP_CUDA_ON_CPU_DYNAMIC_SHARED(type, name) \
  type* const name =                                    \
      static_cast<type*>(::lockstep::cuda_on_cpu::DynamicShared())
#define LOCKSTEP_CUDA_ON_CPU_SHARED(type, name, sizes) \
  static thread_local type name sizes;                 \
  ::lockstep::cuda_on_cpu::BeginShared(&name, sizeof(name))

// As of CUDA: a size from one number, or three.
struct dim3 : lockstep::cuda_on_cpu::Size3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : Size3{x, y, z} {}
};

namespace lockstep::cuda_on_cpu {

struct LaunchShape {
  GridShape grid;
  cudaStream_t stream;
  const void* kernel = nullptr;  // its address, where it is known
};

// Queues a kernel, as cudaLaunchKernel() does. `reachable`: its arguments
// have no memory of the host in them. The error is that of cudaGetLastError().
void QueueKernel(const LaunchShape& shape, bool reachable,
                 std::function<void()> body);

template <typename Kernel>
class Launcher {
 public:
  Launcher(Kernel kernel, const char* name, const dim3& grid,
           const dim3& block = {}, size_t shared_bytes = 0,
           cudaStream_t stream = nullptr)
      : kernel_(kernel), shape_{{name, grid, block, shared_bytes}, stream} {}

  Launcher& Of(const void* kernel) {
    shape_.kernel = kernel;
    return *this;
  }

  template <typename... Arguments>
  void operator()(Arguments... arguments) const {
    bool reachable = true;
    ((reachable = MakeInside(arguments) && reachable), ...);
    QueueKernel(shape_, reachable,
                [kernel = kernel_, arguments...] { kernel(arguments...); });
  }

 private:
  const Kernel kernel_;
  LaunchShape shape_;
};

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_LAUNCH_H_
