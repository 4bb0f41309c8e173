#include "common/collective/element_kernels.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/numeric/element_operations.h"
#include "common/numeric/float16.h"

namespace lockstep {
namespace {

template <typename T, bool = std::is_integral_v<T>>
struct Operand {
  using Type = T;
};
// Integers are computed unsigned, where overflow wraps around with the same
// bits; signed overflow is undefined. Those below 32 bits are widened, because
// C++ would compute them as int.
template <typename T>
struct Operand<T, true> {
  using Type = std::conditional_t<sizeof(T) < sizeof(uint32_t), uint32_t,
                                  std::make_unsigned_t<T>>;
};

template <typename T>
T Quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Division by 0 would end the process; floats give infinity or NaN.
    if (b == 0) return 0;
    // The only division that overflows is that of the smallest number by -1.
    if constexpr (std::is_signed_v<T>) {
      using U = typename Operand<T>::Type;
      if (b == T{-1}) return static_cast<T>(U{0} - static_cast<U>(a));
    }
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

template <typename T, typename Function>
void Each(size_t count, std::byte* a, const std::byte* b, Function function) {
  for (size_t i = 0; i < count; ++i) {
    // Elements may lie at any address, so they are copied.
    const T result = function(LoadElement<T>(a, i), LoadElement<T>(b, i));
    std::memcpy(a + i * sizeof(T), &result, sizeof(T));
  }
}

template <typename T>
T Rounded(double number) {
  return static_cast<T>(number);
}
template <>
Float16 Rounded<Float16>(double number) {
  return ToFloat16(number);
}

}  // namespace

template <typename T>
void CombineKernel(Arithmetic op, size_t count, std::byte* a,
                   const std::byte* b) {
  using U = typename Operand<T>::Type;
  switch (op) {
    case Arithmetic::kAdd:
      return Each<T>(count, a, b, [](T x, T y) {
        return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
      });
    case Arithmetic::kSubtract:
      return Each<T>(count, a, b, [](T x, T y) {
        return static_cast<T>(static_cast<U>(x) - static_cast<U>(y));
      });
    case Arithmetic::kMultiply:
      return Each<T>(count, a, b, [](T x, T y) {
        return static_cast<T>(static_cast<U>(x) * static_cast<U>(y));
      });
    case Arithmetic::kDivide:
      return Each<T>(count, a, b, [](T x, T y) { return Quotient<T>(x, y); });
  }
}

template <typename T>
void DivideAllKernel(size_t count, std::byte* a, double divisor) {
  // Rounded first: a division in double would give other last bits.
  const T rounded = Rounded<T>(divisor);
  for (size_t i = 0; i < count; ++i) {
    const T result = LoadElement<T>(a, i) / rounded;
    std::memcpy(a + i * sizeof(T), &result, sizeof(T));
  }
}

template void CombineKernel<float>(Arithmetic, size_t, std::byte*,
                                   const std::byte*);
template void CombineKernel<double>(Arithmetic, size_t, std::byte*,
                                    const std::byte*);
template void CombineKernel<Float16>(Arithmetic, size_t, std::byte*,
                                     const std::byte*);
template void CombineKernel<int32_t>(Arithmetic, size_t, std::byte*,
                                     const std::byte*);
template void CombineKernel<int64_t>(Arithmetic, size_t, std::byte*,
                                     const std::byte*);
template void CombineKernel<int8_t>(Arithmetic, size_t, std::byte*,
                                    const std::byte*);
template void CombineKernel<uint8_t>(Arithmetic, size_t, std::byte*,
                                     const std::byte*);
template void CombineKernel<int16_t>(Arithmetic, size_t, std::byte*,
                                     const std::byte*);
template void CombineKernel<uint16_t>(Arithmetic, size_t, std::byte*,
                                      const std::byte*);
template void CombineKernel<uint32_t>(Arithmetic, size_t, std::byte*,
                                      const std::byte*);
template void CombineKernel<uint64_t>(Arithmetic, size_t, std::byte*,
                                      const std::byte*);
template void DivideAllKernel<float>(size_t, std::byte*, double);
template void DivideAllKernel<double>(size_t, std::byte*, double);
template void DivideAllKernel<Float16>(size_t, std::byte*, double);

}  // namespace lockstep
