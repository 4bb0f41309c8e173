#ifndef LOCKSTEP_SERVER_UPDATE_UPDATE_KERNELS_H_
#define LOCKSTEP_SERVER_UPDATE_UPDATE_KERNELS_H_

#include <cstddef>

#include "common/numeric/float16.h"
#include "common/numeric/vector_clones.h"
#include "server/update/slots.h"

// The arithmetic of the update rules on a few elements, in the order of
// operations of TensorFlow's kernels: every operation rounds once. They are
// compiled in a file of their own, so that a caller's floating-point mode holds
// for all operations.
//
// Hyper-parameters are float32, whatever the variable is. They are widened in
// here and not by the caller: GCC 12 drops the rounding of a pair of doubles to
// float if it sees them widened again.
namespace lockstep::server {

// The elements of one call. `new_*` may be the memory of `old_*`, element by
// element; otherwise they must not overlap.
template <typename T>
struct UpdateBlock {
  size_t count = 0;                     // elements
  const std::byte* gradient = nullptr;  // at any address
  const T* old_value = nullptr;
  T* new_value = nullptr;
  const T* old_slots[kMaxSlots] = {};
  T* new_slots[kMaxSlots] = {};
};

// The memory of a block whose rule keeps one slot, or two, with names for the
// loops of kernels.
template <typename T>
struct OneSlotMemory {
  const std::byte* gradient;
  const T* old_value;
  const T* old_slot;
  T* new_value;
  T* new_slot;
};
template <typename T>
LOCKSTEP_INLINE OneSlotMemory<T> MemoryWithOneSlot(
    const UpdateBlock<T>& block) {
  return {block.gradient, block.old_value, block.old_slots[0], block.new_value,
          block.new_slots[0]};
}
template <typename T>
struct TwoSlotsMemory {
  const std::byte* gradient;
  const T* old_value;
  const T* old_first;
  const T* old_second;
  T* new_value;
  T* new_first;
  T* new_second;
};
template <typename T>
LOCKSTEP_INLINE TwoSlotsMemory<T> MemoryWithTwoSlots(
    const UpdateBlock<T>& block) {
  return {block.gradient,     block.old_value, block.old_slots[0],
          block.old_slots[1], block.new_value, block.new_slots[0],
          block.new_slots[1]};
}

template <typename T>
struct AdamCoefficients {
  T alpha = {};  // the learning rate with its bias correction
  T one_minus_beta1 = {};
  T one_minus_beta2 = {};
  T epsilon = {};
};

// The inputs of MakeAdamCoefficients().
struct AdamHyperparameters {
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float beta1_power = 0;  // of this step
  float beta2_power = 0;
};

// Defined for float, double and Float16, like every kernel here.
template <typename T>
AdamCoefficients<T> MakeAdamCoefficients(const AdamHyperparameters& hyper);

void GradientDescentKernel(const UpdateBlock<float>& block, float rate);
void GradientDescentKernel(const UpdateBlock<double>& block, float rate);
void GradientDescentKernel(const UpdateBlock<Float16>& block, float rate);

// Slot 0 is the momentum.
void MomentumKernel(const UpdateBlock<float>& block, float rate,
                    float momentum);
void MomentumKernel(const UpdateBlock<double>& block, float rate,
                    float momentum);
void MomentumKernel(const UpdateBlock<Float16>& block, float rate,
                    float momentum);
void NesterovKernel(const UpdateBlock<float>& block, float rate,
                    float momentum);
void NesterovKernel(const UpdateBlock<double>& block, float rate,
                    float momentum);
void NesterovKernel(const UpdateBlock<Float16>& block, float rate,
                    float momentum);

// Slot 0 is m, slot 1 is v.
void AdamKernel(const UpdateBlock<float>& block,
                const AdamCoefficients<float>& coefficients);
void AdamKernel(const UpdateBlock<double>& block,
                const AdamCoefficients<double>& coefficients);
void AdamKernel(const UpdateBlock<Float16>& block,
                const AdamCoefficients<Float16>& coefficients);

// sum[i] = a[i] + b[i]. `a` and `b` are at any address; `sum` may be `a`.
void AddKernel(size_t count, const std::byte* a, const std::byte* b,
               float* sum);
void AddKernel(size_t count, const std::byte* a, const std::byte* b,
               double* sum);
void AddKernel(size_t count, const std::byte* a, const std::byte* b,
               Float16* sum);

// mean[i] = (a[i] + b[i]) / divisor, rounded twice. Returns true if every mean
// is finite. `mean` may be `a`.
bool MeanKernel(size_t count, const std::byte* a, const std::byte* b,
                float divisor, float* mean);
bool MeanKernel(size_t count, const std::byte* a, const std::byte* b,
                double divisor, double* mean);
bool MeanKernel(size_t count, const std::byte* a, const std::byte* b,
                Float16 divisor, Float16* mean);

// quotient[i] = a[i] / divisor. `quotient` may be `a`.
void DivideKernel(size_t count, const std::byte* a, float divisor,
                  float* quotient);
void DivideKernel(size_t count, const std::byte* a, double divisor,
                  double* quotient);
void DivideKernel(size_t count, const std::byte* a, Float16 divisor,
                  Float16* quotient);

// False if one of `count` elements at any address is NaN or an infinity.
bool AllFiniteBFloat16(size_t count, const std::byte* a);
bool AllFiniteFloat16(size_t count, const std::byte* a);
bool AllFiniteFloat(size_t count, const std::byte* a);
bool AllFiniteDouble(size_t count, const std::byte* a);

// a * b, under the floating-point mode of the caller.
float Product(float a, float b);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_UPDATE_KERNELS_H_
