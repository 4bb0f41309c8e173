#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_ELEMENTWISE_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_ELEMENTWISE_H_

#include <cstdint>

// Loops without dependence between neighbours, for the compiler to vectorise.
// T is float or double; the operations are those of ComputeBackend.
namespace lockstep::cpu {

// `values` is [rows, n], `bias` [n].
template <typename T>
void AddBias(int64_t rows, int64_t n, const T* bias, T* values);

// Sums from the first row to the last.
template <typename T>
void BiasGradient(int64_t rows, int64_t n, const T* out_gradient,
                  T* bias_gradient);

template <typename T>
void Relu(int64_t count, const T* in, T* out);

template <typename T>
void ReluGradient(int64_t count, const T* out, const T* out_gradient,
                  T* in_gradient);

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_ELEMENTWISE_H_
