#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/kernels/elementwise.h"

namespace lockstep::worker::cuda {

#define LOCKSTEP_FOR_EACH(...)                              \
  template cudaError_t LaunchForEach(cudaStream_t, int64_t, \
                                     const kernels::__VA_ARGS__&)
#define LOCKSTEP_GRID(...)                                        \
  template cudaError_t LaunchGrid(cudaStream_t, int64_t, int64_t, \
                                  const kernels::__VA_ARGS__&)
#define LOCKSTEP_ELEMENTWISE(T)                              \
  LOCKSTEP_GRID(AddBias<T>);                                 \
  LOCKSTEP_GRID(Embed<T>);                                   \
  LOCKSTEP_GRID(EmbedGradient<T>);                           \
  LOCKSTEP_FOR_EACH(Relu<T>);                                \
  LOCKSTEP_FOR_EACH(ReluGradient<T>);                        \
  LOCKSTEP_FOR_EACH(Combine<T>);                             \
  LOCKSTEP_FOR_EACH(Dropout<T>);                             \
  LOCKSTEP_FOR_EACH(Activate<T, Activation::kGelu>);         \
  LOCKSTEP_FOR_EACH(Activate<T, Activation::kTanh>);         \
  LOCKSTEP_FOR_EACH(Activate<T, Activation::kSigmoid>);      \
  LOCKSTEP_FOR_EACH(ActivateGradient<T, Activation::kGelu>); \
  LOCKSTEP_FOR_EACH(ActivateGradient<T, Activation::kTanh>); \
  LOCKSTEP_FOR_EACH(ActivateGradient<T, Activation::kSigmoid>)

LOCKSTEP_ELEMENTWISE(float);
LOCKSTEP_ELEMENTWISE(double);
LOCKSTEP_FOR_EACH(ToBfloat16);

}  // namespace lockstep::worker::cuda
