#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/kernels/columns.h"

namespace lockstep::worker::cuda {

// The launches of launch.cuh are templates that only nvcc can compile. Each .cu
// file instantiates those of one family, so that they compile in parallel.
#define LOCKSTEP_SUM(T, ...)                                            \
  template cudaError_t LaunchSumColumns(cudaStream_t, int64_t, int64_t, \
                                        const kernels::__VA_ARGS__&, T*, T*)
#define LOCKSTEP_GRID(...)                                        \
  template cudaError_t LaunchGrid(cudaStream_t, int64_t, int64_t, \
                                  const kernels::__VA_ARGS__&)
#define LOCKSTEP_COLUMNS(T)            \
  LOCKSTEP_SUM(T, Element<T>);         \
  LOCKSTEP_SUM(T, SquaredDistance<T>); \
  LOCKSTEP_SUM(T, LayerNormScale<T>);  \
  LOCKSTEP_SUM(T, BatchNormScale<T>);  \
  LOCKSTEP_GRID(BatchNorm<T>);         \
  LOCKSTEP_GRID(BatchNormGradient<T>)

LOCKSTEP_COLUMNS(float);
LOCKSTEP_COLUMNS(double);

}  // namespace lockstep::worker::cuda
