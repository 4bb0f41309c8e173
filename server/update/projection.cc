#include "server/update/projection.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"

namespace lockstep::server {
namespace {

using Kind = VariableConstraint::Kind;

double Widen(Float16 value) { return ToFloat(value); }
double Widen(BFloat16 value) { return ToFloat(value); }
double Widen(float value) { return value; }
double Widen(double value) { return value; }
void Narrow(double value, Float16& to) { to = ToFloat16(value); }
void Narrow(double value, BFloat16& to) { to = ToBFloat16(value); }
void Narrow(double value, float& to) { to = static_cast<float>(value); }
void Narrow(double value, double& to) { to = value; }

template <typename T>
void RemoveNegative(absl::Span<T> values) {
  for (T& value : values) {
    if (Widen(value) < 0) value = T{};
  }
}

template <typename T>
void LimitNorm(double max_norm, absl::Span<T> row) {
  // In float64: the squares of large float16 or float32 elements would
  // overflow.
  double squares = 0;
  for (const T& value : row) squares += Widen(value) * Widen(value);
  const double norm = std::sqrt(squares);
  // The comparison is false for NaN, too: such a row stays as it is.
  if (!(norm > max_norm)) return;
  for (T& value : row) Narrow(Widen(value) * (max_norm / norm), value);
}

// Not inlined: the compiler could move the arithmetic out of the scope in which
// subnormal numbers are flushed.
template <typename T>
__attribute__((noinline)) void ProjectElements(
    const VariableConstraint& constraint, int64_t row,
    absl::Span<std::byte> bytes) {
  const absl::Span<T> values(reinterpret_cast<T*>(bytes.data()),
                             bytes.size() / sizeof(T));
  if (constraint.kind == Kind::kNonNegative) return RemoveNegative(values);
  const auto width = static_cast<size_t>(row);
  for (size_t i = 0; i + width <= values.size(); i += width) {
    LimitNorm(constraint.max_norm, values.subspan(i, width));
  }
}

}  // namespace

int64_t RowElements(const VariableSpec& variable) {
  const int64_t elements = NumElements(variable.shape);
  return variable.shape.size() < 2 ? elements : elements / variable.shape[0];
}

absl::Status CheckProjection(const VariableConstraint& constraint,
                             const VariableSpec& variable, int64_t offset,
                             int64_t count) {
  const int64_t row = RowElements(variable);
  if (constraint.kind != Kind::kMaxNorm ||
      (offset % row == 0 && count % row == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("constraints: MAX_NORM of variable \"", variable.name,
                   "\" needs parts of whole rows, which have ", row,
                   " elements, but one has ", count, " from ", offset,
                   " on; raise max_part_bytes or choose another partitioner"));
}

void Project(const VariableConstraint& constraint, DType dtype, int64_t row,
             absl::Span<std::byte> values) {
  if (constraint.kind == Kind::kUnspecified || row < 1) return;
  // As in the update before: some of the threads that come here flush subnormal
  // numbers anyway, and the thread must not decide the bits.
  const ScopedFlushDenormals flush;
  switch (dtype) {
    case DType::kFloat16:
      return ProjectElements<Float16>(constraint, row, values);
    case DType::kFloat32:
      return ProjectElements<float>(constraint, row, values);
    case DType::kFloat64:
      return ProjectElements<double>(constraint, row, values);
    case DType::kBFloat16:
      return ProjectElements<BFloat16>(constraint, row, values);
  }
}

}  // namespace lockstep::server
