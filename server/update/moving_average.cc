#include "server/update/moving_average.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/element_operations.h"
#include "common/numeric/float16.h"

// Compiled with -ffp-contract=off. Functions that do arithmetic must not be
// inlined into those that change the floating-point mode: the compiler could
// move the arithmetic across the change.
namespace lockstep::server {
namespace {

#define LOCKSTEP_NOINLINE __attribute__((noinline))

LOCKSTEP_NOINLINE float CappedFactor(float decay, float num_updates) {
  return 1.0f - std::min(decay, (1.0f + num_updates) / (10.0f + num_updates));
}

LOCKSTEP_NOINLINE float Complement(float decay) { return 1.0f - decay; }

template <typename T>
LOCKSTEP_NOINLINE void Move(float factor, const std::byte* values,
                            std::byte* averages, size_t count) {
  const T k = FromFloat<T>(factor);
  T* average = reinterpret_cast<T*>(averages);
  for (size_t i = 0; i < count; ++i) {
    const T value = LoadElement<T>(values, i);
    average[i] = average[i] - (average[i] - value) * k;
  }
}

// Computed in float32, and rounded once.
LOCKSTEP_NOINLINE void MoveBFloat16(float k, const std::byte* values,
                                    std::byte* averages, size_t count) {
  auto* average = reinterpret_cast<BFloat16*>(averages);
  for (size_t i = 0; i < count; ++i) {
    const float value = ToFloat(LoadElement<BFloat16>(values, i));
    const float old = ToFloat(average[i]);
    average[i] = ToBFloat16(old - (old - value) * k);
  }
}

bool IsWhole(DType dtype, absl::Span<const std::byte> bytes) {
  const size_t size = ElementSize(dtype);
  return bytes.size() % size == 0 &&
         reinterpret_cast<uintptr_t>(bytes.data()) % size == 0;
}

absl::Status Check(DType dtype, absl::Span<const std::byte> value,
                   absl::Span<const std::byte> average) {
  if (value.size() == average.size() && IsWhole(dtype, average)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "value and average have ", value.size(), " and ", average.size(),
      " bytes; both must be the same number of whole, aligned elements"));
}

}  // namespace

float AverageFactor(double decay, std::optional<int64_t> num_updates) {
  const ScopedFlushDenormals flush;
  const auto single = static_cast<float>(decay);
  if (!num_updates.has_value()) return Complement(single);
  return CappedFactor(single, static_cast<float>(*num_updates));
}

absl::Status UpdateAverage(DType dtype, float factor,
                           absl::Span<const std::byte> value,
                           absl::Span<std::byte> average) {
  if (absl::Status s = Check(dtype, value, average); !s.ok()) return s;
  const ScopedFlushDenormals flush;
  const size_t count = value.size() / ElementSize(dtype);
  switch (dtype) {
    case DType::kFloat16:
      Move<Float16>(factor, value.data(), average.data(), count);
      break;
    case DType::kFloat32:
      Move<float>(factor, value.data(), average.data(), count);
      break;
    case DType::kFloat64:
      Move<double>(factor, value.data(), average.data(), count);
      break;
    case DType::kBFloat16:
      MoveBFloat16(factor, value.data(), average.data(), count);
      break;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::server
