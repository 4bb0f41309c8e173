#ifndef LOCKSTEP_COMMON_COLLECTIVE_ARITHMETIC_H_
#define LOCKSTEP_COMMON_COLLECTIVE_ARITHMETIC_H_

#include <cstddef>

#include "absl/types/span.h"
#include "common/collective/element_type.h"

// Operations on the elements of two arrays. Each rounds once in the element
// type; float32 and float64 treat subnormal numbers as zeros, integers wrap
// around. bfloat16 is computed in float32 and rounded. The type must be a
// number, see CheckIsNumber(); kBool stays as it is.
//
// Units: arrays are bytes of `count` elements, which may lie at any address.
namespace lockstep {

enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide };

// a[i] = a[i] op b[i]. Integers are divided as in TensorFlow's scatter, towards
// zero; a division by zero gives 0.
void Combine(ElementType type, Arithmetic op, size_t count, std::byte* a,
             const std::byte* b);

// a[i] = a[i] / divisor, with the divisor rounded to the type. Has no effect on
// integers.
void DivideAll(ElementType type, size_t count, std::byte* a, double divisor);

// sum[i] = ((terms[0][i] + terms[1][i]) + terms[2][i]) + ..., then divided by
// `divisor` if that is above 1. `sum` may be terms[0], but must not overlap
// other terms. bfloat16 is summed and divided in float32, and rounded once at
// the end.
void SumInOrder(ElementType type, size_t count,
                absl::Span<const std::byte* const> terms, double divisor,
                std::byte* sum);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_ARITHMETIC_H_
