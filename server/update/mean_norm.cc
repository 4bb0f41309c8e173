#include "server/update/mean_norm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"
#include "server/update/mean_reader.h"
#include "server/update/torch_kernels.h"

namespace lockstep::server {
namespace {

// Element i is added to lane i % kSquareLanes in Store() as in SumOf(): servers
// that measure a mean block by block or as a whole get the same bits.
static_assert(kBlockElements % kSquareLanes == 0);

class Squares {
 public:
  template <typename T>
  void Add(size_t count, const std::byte* elements) {
    if constexpr (std::is_same_v<T, float>) {
      AddSquaresOfFloats(count, elements, lanes_.data());
    } else if constexpr (std::is_same_v<T, double>) {
      AddSquaresOfDoubles(count, elements, lanes_.data());
    } else {
      AddSquaresOfFloat16s(count, elements, lanes_.data());
    }
  }

  // The sum of the lanes, in their order.
  double sum() const {
    double sum = 0;
    for (const double lane : lanes_) sum += lane;
    return sum;
  }

 private:
  std::array<double, kSquareLanes> lanes_ = {};
};

template <typename T>
T Divisor(int64_t divisor) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(static_cast<float>(divisor));
  } else {
    return static_cast<T>(divisor);
  }
}

template <typename T>
MeanOutcome Store(absl::Span<const GradientSlices> gradients, int64_t divisor,
                  absl::Span<std::byte> mean, absl::Span<const int> merges,
                  bool measure) {
  const ScopedFlushDenormals flush;
  MeanReader<T> reader(gradients, Divisor<T>(divisor), merges);
  Squares squares;
  const size_t size = mean.size() / sizeof(T);
  for (size_t first = 0; first < size; first += kBlockElements) {
    const size_t count = std::min(kBlockElements, size - first);
    const std::byte* block = reader.Next(count);
    if (measure) squares.Add<T>(count, block);
    std::memcpy(mean.data() + first * sizeof(T), block, count * sizeof(T));
  }
  return {reader.all_finite(), squares.sum()};
}

template <typename T>
double SumOf(absl::Span<const std::byte> elements) {
  const ScopedFlushDenormals flush;
  Squares squares;
  squares.Add<T>(elements.size() / sizeof(T), elements.data());
  return squares.sum();
}

template <typename T>
void Scale(double scale, absl::Span<std::byte> elements) {
  const ScopedFlushDenormals flush;
  ScaleKernel(elements.size() / sizeof(T), elements.data(), scale,
              reinterpret_cast<T*>(elements.data()));
}

std::vector<float> AsFloats(absl::Span<const std::byte> elements) {
  std::vector<float> floats(elements.size() / kBFloat16Size);
  ExpandBFloat16(floats.size(), elements.data(), floats.data());
  return floats;
}

absl::Span<std::byte> BytesOf(std::vector<float>& floats) {
  return {reinterpret_cast<std::byte*>(floats.data()),
          floats.size() * sizeof(float)};
}

}  // namespace

DType MeanType(DType dtype) {
  return dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

size_t MeanSize(DType dtype, size_t elements) {
  return elements * ElementSize(MeanType(dtype));
}

MeanOutcome StoreMean(DType dtype, absl::Span<const GradientSlices> gradients,
                      int64_t divisor, absl::Span<std::byte> mean,
                      absl::Span<const int> merges, bool measure) {
  switch (dtype) {
    case DType::kFloat16:
      return Store<Float16>(gradients, divisor, mean, merges, measure);
    case DType::kFloat32:
      return Store<float>(gradients, divisor, mean, merges, measure);
    case DType::kFloat64:
      return Store<double>(gradients, divisor, mean, merges, measure);
    case DType::kBFloat16:
      break;
  }
  std::vector<GradientSlices> packed(gradients.begin(), gradients.end());
  // To the reader, gradients of a bfloat16 variable are float32 ones that were
  // sent as bfloat16.
  for (GradientSlices& each : packed) each.type = GradientType::kBFloat16;
  return Store<float>(packed, divisor, mean, merges, measure);
}

double SumOfSquares(DType dtype, absl::Span<const std::byte> elements) {
  switch (dtype) {
    case DType::kFloat16:
      return SumOf<Float16>(elements);
    case DType::kFloat32:
      return SumOf<float>(elements);
    case DType::kFloat64:
      return SumOf<double>(elements);
    case DType::kBFloat16:
      break;
  }
  std::vector<float> floats = AsFloats(elements);
  return SumOf<float>(BytesOf(floats));
}

void ScaleElements(DType dtype, double scale, absl::Span<std::byte> elements) {
  if (scale == 1) return;
  switch (dtype) {
    case DType::kFloat16:
      return Scale<Float16>(scale, elements);
    case DType::kFloat32:
      return Scale<float>(scale, elements);
    case DType::kFloat64:
      return Scale<double>(scale, elements);
    case DType::kBFloat16:
      break;
  }
  std::vector<float> floats = AsFloats(elements);
  Scale<float>(scale, BytesOf(floats));
  RoundToBFloat16(floats.size(), BytesOf(floats).data(), elements.data());
}

double ClippingScale(double limit, double norm) {
  const double scale = limit / (norm + 1e-6);
  // The comparison is false for NaN, which is returned.
  return scale > 1 ? 1 : scale;
}

}  // namespace lockstep::server
