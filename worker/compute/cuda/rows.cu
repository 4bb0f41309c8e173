#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/kernels/rows.h"

namespace lockstep::worker::cuda {

#define LOCKSTEP_ROWS(...)                               \
  template cudaError_t LaunchRows(cudaStream_t, int64_t, \
                                  const kernels::__VA_ARGS__&)
#define LOCKSTEP_ROWS_OF(T)              \
  LOCKSTEP_ROWS(SoftmaxCrossEntropy<T>); \
  LOCKSTEP_ROWS(IsCorrect<T>);           \
  LOCKSTEP_ROWS(CountNonFinite<T>);      \
  LOCKSTEP_ROWS(LayerNorm<T>);           \
  LOCKSTEP_ROWS(LayerNormGradient<T>);   \
  LOCKSTEP_ROWS(CausalSoftmax<T>);       \
  LOCKSTEP_ROWS(CausalSoftmaxGradient<T>)

LOCKSTEP_ROWS_OF(float);
LOCKSTEP_ROWS_OF(double);
LOCKSTEP_ROWS(Total);

}  // namespace lockstep::worker::cuda
