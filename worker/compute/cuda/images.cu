#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/kernels/images.h"

namespace lockstep::worker::cuda {

#define LOCKSTEP_GRID(...)                                        \
  template cudaError_t LaunchGrid(cudaStream_t, int64_t, int64_t, \
                                  const kernels::__VA_ARGS__&)
#define LOCKSTEP_IMAGES(T)           \
  LOCKSTEP_GRID(ImagesToPatches<T>); \
  LOCKSTEP_GRID(PatchesToImages<T>); \
  LOCKSTEP_GRID(MaxPool<T>);         \
  LOCKSTEP_GRID(MaxPoolGradient<T>); \
  LOCKSTEP_GRID(AveragePool<T>);     \
  LOCKSTEP_GRID(AveragePoolGradient<T>)

LOCKSTEP_IMAGES(float);
LOCKSTEP_IMAGES(double);

}  // namespace lockstep::worker::cuda
