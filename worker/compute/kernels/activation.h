#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_ACTIVATION_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_ACTIVATION_H_

namespace lockstep::worker {

// Functions of one element; ReLU is an operation of its own.
enum class Activation : int {
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the approximation of
  // "Gaussian Error Linear Units" (Hendrycks, Gimpel 2016) that GPT-2 uses.
  kGelu,
  kTanh,
  kSigmoid,  // 1 / (1 + exp(-x))
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_ACTIVATION_H_
