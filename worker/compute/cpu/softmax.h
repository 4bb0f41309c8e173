#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_SOFTMAX_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_SOFTMAX_H_

#include <cstdint>

// The operations of ComputeBackend on `rows` rows of `classes` logits and a
// label each, in range. T is float or double.
namespace lockstep::cpu {

template <typename T>
double SoftmaxCrossEntropy(int64_t rows, int64_t classes, const T* logits,
                           const int32_t* labels, T* logits_gradient);

template <typename T>
int64_t CountCorrect(int64_t rows, int64_t classes, const T* logits,
                     const int32_t* labels);

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_SOFTMAX_H_
