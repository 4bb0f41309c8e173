// The loops of arithmetic.h, in a source file of their own: the compiler must
// not move arithmetic across the change of the floating-point mode, nor fuse a
// multiplication with an addition.

#ifndef LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_KERNELS_H_
#define LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_KERNELS_H_

#include <cstddef>

#include "common/collective/arithmetic.h"

namespace lockstep {

// T is float, double, Float16, or an integer of 8, 16, 32 or 64 bits.
template <typename T>
void CombineKernel(Arithmetic op, size_t count, std::byte* a,
                   const std::byte* b);

// T is float, double or Float16.
template <typename T>
void DivideAllKernel(size_t count, std::byte* a, double divisor);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_ELEMENT_KERNELS_H_
