#include "worker/compute/cpu/softmax.h"

#include <algorithm>
#include <cmath>

namespace lockstep::cpu {
namespace {

// One row's loss. `gradient` becomes (softmax - one at the label) * scale.
// The largest logit is taken off first, so that exp() cannot overflow.
template <typename T>
double Row(int64_t classes, const T* logits, int32_t label, T scale,
           T* gradient) {
  const T largest = *std::max_element(logits, logits + classes);
  T sum = 0;
  for (int64_t i = 0; i < classes; ++i) {
    gradient[i] = std::exp(logits[i] - largest);
    sum += gradient[i];
  }
  for (int64_t i = 0; i < classes; ++i) gradient[i] *= scale / sum;
  gradient[label] -= scale;
  return std::log(sum) - (logits[label] - largest);
}

// False too if any of them is NaN.
template <typename T>
bool IsLargest(int64_t classes, const T* logits, int32_t label) {
  for (int64_t i = 0; i < classes; ++i) {
    const bool holds =
        i < label ? logits[label] > logits[i] : logits[label] >= logits[i];
    if (!holds) return false;
  }
  return true;
}

}  // namespace

template <typename T>
double SoftmaxCrossEntropy(int64_t rows, int64_t classes, const T* logits,
                           const int32_t* labels, T* logits_gradient) {
  if (rows == 0) return 0;
  const T scale = T{1} / static_cast<T>(rows);
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += Row(classes, logits + row * classes, labels[row], scale,
               logits_gradient + row * classes);
  }
  return sum / static_cast<double>(rows);
}

template <typename T>
int64_t CountCorrect(int64_t rows, int64_t classes, const T* logits,
                     const int32_t* labels) {
  int64_t correct = 0;
  for (int64_t row = 0; row < rows; ++row) {
    correct += IsLargest(classes, logits + row * classes, labels[row]);
  }
  return correct;
}

template double SoftmaxCrossEntropy(int64_t, int64_t, const float*,
                                    const int32_t*, float*);
template double SoftmaxCrossEntropy(int64_t, int64_t, const double*,
                                    const int32_t*, double*);
template int64_t CountCorrect(int64_t, int64_t, const float*, const int32_t*);
template int64_t CountCorrect(int64_t, int64_t, const double*, const int32_t*);

}  // namespace lockstep::cpu
