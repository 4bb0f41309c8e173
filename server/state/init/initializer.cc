#include "server/state/init/initializer.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "server/state/init/orthogonal_matrix.h"

namespace lockstep::server {
namespace {

// The standard deviation of standard normal numbers without those beyond 2.
// Glorot's formula divides by it, as TensorFlow does.
constexpr double kTruncatedDeviation = 0.87962566103423978;

// A limit, because a server that needs a part of an orthogonal matrix computes
// all of it.
constexpr int64_t kMaxOrthogonalElements = int64_t{1} << 22;

template <typename T>
T Rounded(double value) {
  return static_cast<T>(value);
}
template <>
Float16 Rounded<Float16>(double value) {
  return ToFloat16(value);
}

template <>
BFloat16 Rounded<BFloat16>(double value) {
  return ToBFloat16(value);
}

// The neighbour of `value`, which is above `low`, towards `low`.
template <typename T>
T Below(T value, double low) {
  return std::nextafter(value, static_cast<T>(low));
}
template <typename Half>
Half HalfBelow(Half value, double low) {
  const float end = ToFloat(value);
  // The negative number nearest to 0: the bits of a half are sign and
  // magnitude.
  if (end == 0) return Half{low < 0 ? uint16_t{0x8001} : uint16_t{0}};
  const int step = end > 0 ? -1 : 1;
  return Half{static_cast<uint16_t>(value.bits + step)};
}
Float16 Below(Float16 value, double low) { return HalfBelow(value, low); }
BFloat16 Below(BFloat16 value, double low) { return HalfBelow(value, low); }

bool Less(double a, double b) { return a < b; }
bool Less(Float16 a, Float16 b) { return a < b; }
bool Less(BFloat16 a, BFloat16 b) { return ToFloat(a) < ToFloat(b); }

// Rounding to T may reach the upper end, which the range excludes.
template <typename T>
T UniformIn(double low, double high, double fraction) {
  const T value = Rounded<T>(low + (high - low) * fraction);
  const T end = Rounded<T>(high);
  return Less(value, end) || low >= high ? value : Below(end, low);
}

// The value of element `index` before it is rounded. Uniform kinds have
// UniformIn(): they must not round up to their end.
double NormalAt(const Initializer& init, const Fans& fans,
                const CounterRandom& random, int64_t index) {
  switch (init.kind) {
    case Initializer::Kind::kNormal:
      return init.a + init.b * random.Normal(index);
    case Initializer::Kind::kTruncatedNormal:
      return init.a + init.b * random.TruncatedNormal(index);
    case Initializer::Kind::kGlorotNormal:
      return std::sqrt(2 / (fans.in + fans.out)) / kTruncatedDeviation *
             random.TruncatedNormal(index);
    case Initializer::Kind::kHeNormal:
      return std::sqrt(2 / fans.in) * random.Normal(index);
    default:
      return init.a;
  }
}

struct Range {
  double low = 0;
  double high = 0;
};
std::optional<Range> UniformRange(const Initializer& init, const Fans& fans) {
  switch (init.kind) {
    case Initializer::Kind::kUniform:
      return Range{init.a, init.b};
    case Initializer::Kind::kGlorotUniform: {
      const double limit = std::sqrt(6 / (fans.in + fans.out));
      return Range{-limit, limit};
    }
    case Initializer::Kind::kHeUniform: {
      const double limit = std::sqrt(6 / fans.in);
      return Range{-limit, limit};
    }
    default:
      return std::nullopt;
  }
}

absl::Status CheckRange(const VariableSpec& spec, int64_t offset,
                        absl::Span<const std::byte> values) {
  const size_t size = ElementSize(spec.dtype);
  if (size == 0 || values.size() % size != 0 ||
      reinterpret_cast<uintptr_t>(values.data()) % size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable ", spec.name, ": ", values.size(), " bytes at a multiple of ",
        size, " are needed for whole elements"));
  }
  const int64_t elements = NumElements(spec.shape);
  const auto count = static_cast<int64_t>(values.size() / size);
  if (offset >= 0 && offset <= elements && count <= elements - offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable ", spec.name, ": elements ", offset, " and ", count,
      " following leave its range of ", elements, " elements"));
}

}  // namespace

Fans ComputeFans(const std::vector<int64_t>& shape) {
  if (shape.empty()) return {};
  const size_t rank = shape.size();
  const auto last = static_cast<double>(shape[rank - 1]);
  if (rank == 1) return {last, last};
  double receptive_field = 1;
  for (size_t i = 0; i + 2 < rank; ++i) {
    receptive_field *= static_cast<double>(shape[i]);
  }
  return {static_cast<double>(shape[rank - 2]) * receptive_field,
          last * receptive_field};
}

absl::StatusOr<InitialValues> InitialValues::Make(const VariableSpec& spec,
                                                  uint64_t seed) {
  InitialValues values(spec, seed);
  if (spec.initializer.kind != Initializer::Kind::kOrthogonal) return values;
  const int64_t elements = NumElements(spec.shape);
  if (spec.shape.size() < 2 || elements > kMaxOrthogonalElements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable ", spec.name, " has shape ", ShapeString(spec.shape),
        "; an orthogonal matrix needs a rank of 2 or more and at most ",
        kMaxOrthogonalElements, " elements"));
  }
  const int64_t cols = spec.shape.back();
  values.matrix_ = OrthogonalMatrix(values.random_, elements / cols, cols);
  return values;
}

template <typename T>
void InitialValues::FillAs(const CounterRandom& random, int64_t offset,
                           absl::Span<std::byte> values) const {
  const Initializer& init = spec_.initializer;
  const Fans fans = ComputeFans(spec_.shape);
  const std::optional<Range> range = UniformRange(init, fans);
  T* out = reinterpret_cast<T*>(values.data());
  const int64_t end = offset + static_cast<int64_t>(values.size() / sizeof(T));
  for (int64_t i = offset; i < end; ++i) {
    if (range.has_value()) {
      *out++ = UniformIn<T>(range->low, range->high, random.Uniform(i, 0));
    } else if (!matrix_.empty()) {
      *out++ = Rounded<T>(init.a * matrix_[i]);
    } else {
      *out++ = Rounded<T>(NormalAt(init, fans, random, i));
    }
  }
}

absl::Status InitialValues::Fill(int64_t offset,
                                 absl::Span<std::byte> values) const {
  if (absl::Status s = CheckRange(spec_, offset, values); !s.ok()) return s;
  return Draw(random_, offset, values);
}

absl::Status InitialValues::FillRow(int64_t key,
                                    absl::Span<std::byte> values) const {
  const size_t row = spec_.shape.empty()
                         ? 0
                         : static_cast<size_t>(RowWidth(spec_.shape)) *
                               ElementSize(spec_.dtype);
  // A row of an orthogonal matrix is not independent of the others.
  if (values.size() != row || !matrix_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", spec_.name, ": ", values.size(),
                     " bytes are no row of a growing table, which has ", row));
  }
  if (absl::Status s = CheckRange(spec_, 0, values); !s.ok()) return s;
  return Draw(random_.OfKey(key), 0, values);
}

absl::Status InitialValues::Draw(const CounterRandom& random, int64_t offset,
                                 absl::Span<std::byte> values) const {
  switch (spec_.dtype) {
    case DType::kFloat32:
      FillAs<float>(random, offset, values);
      return absl::OkStatus();
    case DType::kFloat64:
      FillAs<double>(random, offset, values);
      return absl::OkStatus();
    case DType::kFloat16:
      FillAs<Float16>(random, offset, values);
      return absl::OkStatus();
    case DType::kBFloat16:
      FillAs<BFloat16>(random, offset, values);
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", spec_.name, " has an unknown dtype"));
}

}  // namespace lockstep::server
