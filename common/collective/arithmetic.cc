#include "common/collective/arithmetic.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "common/collective/element_kernels.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"

namespace lockstep {
namespace {

// The number of bfloat16 elements that are converted to float32 at a time.
constexpr size_t kBlock = 256;
using Floats = std::array<float, kBlock>;

std::byte* Bytes(Floats& floats) {
  return reinterpret_cast<std::byte*>(floats.data());
}

// Calls `change` for each block of bfloat16 elements of `a`, in float32, with
// the offset of the block in elements; rounds the results back.
template <typename Change>
void InFloats(size_t count, std::byte* a, const Change& change) {
  Floats block;
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    std::byte* place = a + first * kBFloat16Size;
    ExpandBFloat16(size, place, block.data());
    change(first, size, Bytes(block));
    RoundToBFloat16(size, Bytes(block), place);
  }
}

void CombineInMode(ElementType type, Arithmetic op, size_t count, std::byte* a,
                   const std::byte* b) {
  switch (type) {
    case ElementType::kFloat16:
      return CombineKernel<Float16>(op, count, a, b);
    case ElementType::kFloat32:
      return CombineKernel<float>(op, count, a, b);
    case ElementType::kFloat64:
      return CombineKernel<double>(op, count, a, b);
    case ElementType::kBFloat16:
      return InFloats(
          count, a, [&](size_t first, size_t size, std::byte* floats) {
            Floats other;
            ExpandBFloat16(size, b + first * kBFloat16Size, other.data());
            CombineKernel<float>(op, size, floats, Bytes(other));
          });
    default:
      break;
  }
  if (!IsInteger(type)) return;  // kBool: refused before, see CheckIsNumber()
  VisitInteger(
      type, [&](auto zero) { CombineKernel<decltype(zero)>(op, count, a, b); });
}

void DivideInMode(ElementType type, size_t count, std::byte* a,
                  double divisor) {
  switch (type) {
    case ElementType::kFloat16:
      return DivideAllKernel<Float16>(count, a, divisor);
    case ElementType::kFloat32:
      return DivideAllKernel<float>(count, a, divisor);
    case ElementType::kFloat64:
      return DivideAllKernel<double>(count, a, divisor);
    case ElementType::kBFloat16:
      return InFloats(count, a, [&](size_t, size_t size, std::byte* floats) {
        DivideAllKernel<float>(size, floats, ToFloat(ToBFloat16(divisor)));
      });
    default:
      return;  // integers and kBool
  }
}

void SumBFloat16(size_t count, absl::Span<const std::byte* const> terms,
                 double divisor, std::byte* sum) {
  // InFloats() changes its array in place, so the first term goes there first.
  if (sum != terms[0]) std::memcpy(sum, terms[0], count * kBFloat16Size);
  InFloats(count, sum, [&](size_t first, size_t size, std::byte* floats) {
    Floats other;
    for (size_t t = 1; t < terms.size(); ++t) {
      ExpandBFloat16(size, terms[t] + first * kBFloat16Size, other.data());
      CombineKernel<float>(Arithmetic::kAdd, size, floats, Bytes(other));
    }
    if (divisor > 1) DivideAllKernel<float>(size, floats, divisor);
  });
}

}  // namespace

void Combine(ElementType type, Arithmetic op, size_t count, std::byte* a,
             const std::byte* b) {
  const ScopedFlushDenormals flush;
  CombineInMode(type, op, count, a, b);
}

void DivideAll(ElementType type, size_t count, std::byte* a, double divisor) {
  const ScopedFlushDenormals flush;
  DivideInMode(type, count, a, divisor);
}

void SumInOrder(ElementType type, size_t count,
                absl::Span<const std::byte* const> terms, double divisor,
                std::byte* sum) {
  const ScopedFlushDenormals flush;
  if (type == ElementType::kBFloat16) {
    return SumBFloat16(count, terms, divisor, sum);
  }
  // Block by block, so that the sum stays near the processor.
  constexpr size_t kElements = 4096;
  const size_t item = SizeOf(type);
  for (size_t first = 0; first < count; first += kElements) {
    const size_t size = std::min(kElements, count - first);
    std::byte* place = sum + first * item;
    if (sum != terms[0]) {
      std::memcpy(place, terms[0] + first * item, size * item);
    }
    for (size_t t = 1; t < terms.size(); ++t) {
      CombineInMode(type, Arithmetic::kAdd, size, place,
                    terms[t] + first * item);
    }
    if (divisor > 1) DivideInMode(type, size, place, divisor);
  }
}

}  // namespace lockstep
