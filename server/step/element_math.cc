#include "server/step/element_math.h"

#include <cstring>

#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"

namespace lockstep::server {
namespace {

// Elements handled at once: one vector register, a fixed number, so that every
// compiler makes one instruction of it. Larger blocks spill and are slower.
template <typename T>
constexpr size_t kBlock = 16 / sizeof(T);

template <typename T>
T Add(T a, T b) {
  if constexpr (FlushSubnormals::kByProcessor) {
    return a + b;
  } else {
    return FlushedAdd(a, b);
  }
}

// The float32 sum of two float16 numbers is never subnormal, so nothing is
// flushed.
Float16 Add(Float16 a, Float16 b) { return ToFloat16(ToFloat(a) + ToFloat(b)); }

// In float32, and rounded.
BFloat16 Add(BFloat16 a, BFloat16 b) {
  return ToBFloat16(Add(ToFloat(a), ToFloat(b)));
}

template <typename T>
T Divide(T value, T divisor) {
  if constexpr (FlushSubnormals::kByProcessor) {
    return value / divisor;
  } else {
    return FlushedDivide(value, divisor);
  }
}

Float16 Divide(Float16 value, Float16 divisor) {
  return ToFloat16(ToFloat(value) / ToFloat(divisor));
}

BFloat16 Divide(BFloat16 value, BFloat16 divisor) {
  return ToBFloat16(Divide(ToFloat(value), ToFloat(divisor)));
}

template <typename T>
T FromCount(int64_t count) {
  return static_cast<T>(count);
}

template <>
Float16 FromCount<Float16>(int64_t count) {
  return ToFloat16(static_cast<float>(count));
}

template <>
BFloat16 FromCount<BFloat16>(int64_t count) {
  return ToBFloat16(static_cast<float>(count));
}

// Bytes go through local arrays: the source may be unaligned, and locals
// cannot overlap anything.
template <typename T, size_t kCount>
void AddBlock(const std::byte* addend, std::byte* sum) {
  T a[kCount];
  T b[kCount];
  std::memcpy(a, sum, sizeof(a));
  std::memcpy(b, addend, sizeof(b));
  for (size_t i = 0; i < kCount; ++i) a[i] = Add(a[i], b[i]);
  std::memcpy(sum, a, sizeof(a));
}

template <typename T, size_t kCount>
void DivideBlock(T divisor, std::byte* values) {
  T a[kCount];
  std::memcpy(a, values, sizeof(a));
  for (size_t i = 0; i < kCount; ++i) a[i] = Divide(a[i], divisor);
  std::memcpy(values, a, sizeof(a));
}

template <typename T>
__attribute__((noinline)) void AddAll(size_t count, const std::byte* addend,
                                      std::byte* sum) {
  size_t i = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) {
    AddBlock<T, kBlock<T>>(addend + i * sizeof(T), sum + i * sizeof(T));
  }
  for (; i < count; ++i) {
    AddBlock<T, 1>(addend + i * sizeof(T), sum + i * sizeof(T));
  }
}

template <typename T>
__attribute__((noinline)) void DivideAll(size_t count, int64_t divisor,
                                         std::byte* values) {
  const T typed_divisor = FromCount<T>(divisor);
  size_t i = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) {
    DivideBlock<T, kBlock<T>>(typed_divisor, values + i * sizeof(T));
  }
  for (; i < count; ++i) {
    DivideBlock<T, 1>(typed_divisor, values + i * sizeof(T));
  }
}

}  // namespace

void AddElements(const FlushSubnormals& /*mode*/, DType dtype, size_t count,
                 const std::byte* addend, std::byte* sum) {
  switch (dtype) {
    case DType::kFloat16:
      return AddAll<Float16>(count, addend, sum);
    case DType::kFloat32:
      return AddAll<float>(count, addend, sum);
    case DType::kFloat64:
      return AddAll<double>(count, addend, sum);
    case DType::kBFloat16:
      return AddAll<BFloat16>(count, addend, sum);
  }
}

void DivideElements(const FlushSubnormals& /*mode*/, DType dtype, size_t count,
                    int64_t divisor, std::byte* values) {
  switch (dtype) {
    case DType::kFloat16:
      return DivideAll<Float16>(count, divisor, values);
    case DType::kFloat32:
      return DivideAll<float>(count, divisor, values);
    case DType::kFloat64:
      return DivideAll<double>(count, divisor, values);
    case DType::kBFloat16:
      return DivideAll<BFloat16>(count, divisor, values);
  }
}

}  // namespace lockstep::server
