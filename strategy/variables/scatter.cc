#include "strategy/variables/scatter.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "common/collective/element_type.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"

namespace lockstep::strategy {
namespace {

absl::Status Check(const Slices& slices, const Value& target) {
  LOCKSTEP_RETURN_IF_ERROR(slices.values.Check());
  std::vector<int64_t> rows = target.shape();
  if (rows.empty()) {
    return absl::InvalidArgumentError("a scalar has no rows");
  }
  rows[0] = static_cast<int64_t>(slices.indices.size());
  if (slices.values.type() != target.type() || slices.values.shape() != rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the rows are ", slices.values.Description(), " for ", rows[0],
        " indices, but the variable is ", target.Description()));
  }
  for (const int64_t index : slices.indices) {
    if (index >= 0 && index < target.shape()[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("index ", index, " is not in ", target.Description()));
  }
  return absl::OkStatus();
}

float Number(Float16 x) { return ToFloat(x); }
float Number(BFloat16 x) { return ToFloat(x); }
template <typename T>
T Number(T x) {
  return x;
}

template <typename T>
void Choose(bool least, size_t count, std::byte* a, const std::byte* b) {
  for (size_t i = 0; i < count; ++i) {
    T mine;
    T other;
    std::memcpy(&mine, a + i * sizeof(T), sizeof(T));
    std::memcpy(&other, b + i * sizeof(T), sizeof(T));
    // A NaN compares false: it is never taken, and never replaced.
    const bool take =
        least ? Number(other) < Number(mine) : Number(mine) < Number(other);
    if (take) std::memcpy(a + i * sizeof(T), &other, sizeof(T));
  }
}

void ChooseIn(ElementType type, bool least, size_t count, std::byte* a,
              const std::byte* b) {
  switch (type) {
    case ElementType::kFloat16:
      return Choose<Float16>(least, count, a, b);
    case ElementType::kFloat32:
      return Choose<float>(least, count, a, b);
    case ElementType::kFloat64:
      return Choose<double>(least, count, a, b);
    default:
      break;
  }
  if (!IsInteger(type)) return;  // kBFloat16 and kBool: refused before
  VisitInteger(type,
               [&](auto zero) { Choose<decltype(zero)>(least, count, a, b); });
}

void ApplyRow(ScatterOp op, ElementType type, size_t count, std::byte* row,
              const std::byte* with) {
  switch (op) {
    case ScatterOp::kAdd:
      return Combine(type, Arithmetic::kAdd, count, row, with);
    case ScatterOp::kSubtract:
      return Combine(type, Arithmetic::kSubtract, count, row, with);
    case ScatterOp::kMultiply:
      return Combine(type, Arithmetic::kMultiply, count, row, with);
    case ScatterOp::kDivide:
      return Combine(type, Arithmetic::kDivide, count, row, with);
    case ScatterOp::kMin:
    case ScatterOp::kMax:
      return ChooseIn(type, op == ScatterOp::kMin, count, row, with);
    case ScatterOp::kUpdate:
      std::memcpy(row, with, count * SizeOf(type));
      return;
  }
}

template <typename T>
bool HasZero(const Value& values) {
  const size_t count = values.bytes().size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, values.bytes().data() + i * sizeof(T), sizeof(T));
    if (Number(element) == 0) return true;
  }
  return false;
}

// As TensorFlow: a row is divided by no 0 of any type.
absl::Status CheckDivisors(const Value& values) {
  const auto has_zero = [&values] {
    switch (values.type()) {
      case ElementType::kFloat16:
        return HasZero<Float16>(values);
      case ElementType::kBFloat16:
        return HasZero<BFloat16>(values);
      case ElementType::kFloat32:
        return HasZero<float>(values);
      case ElementType::kFloat64:
        return HasZero<double>(values);
      default:
        return VisitInteger(values.type(), [&values](auto zero) {
          return HasZero<decltype(zero)>(values);
        });
    }
  };
  if (!has_zero()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the rows hold a 0, by which no row can be divided");
}

}  // namespace

absl::Status CheckRows(ScatterOp op, const Slices& slices,
                       const Value& target) {
  LOCKSTEP_RETURN_IF_ERROR(Check(slices, target));
  if (op != ScatterOp::kUpdate) {
    LOCKSTEP_RETURN_IF_ERROR(CheckIsNumber(target.type()));
  }
  if (op == ScatterOp::kDivide) {
    LOCKSTEP_RETURN_IF_ERROR(CheckDivisors(slices.values));
  }
  if (target.type() == ElementType::kBFloat16 &&
      (op == ScatterOp::kMin || op == ScatterOp::kMax)) {
    return absl::UnimplementedError(
        "the least and the greatest of bfloat16 rows cannot be taken; use a "
        "variable of float32");
  }
  return absl::OkStatus();
}

absl::Status ApplyScatter(ScatterOp op, const Slices& slices, Value& target) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRows(op, slices, target));
  const ElementType type = target.type();
  // The division below needs a shape[0] above 0.
  if (target.size() == 0) return absl::OkStatus();
  const size_t count = target.size() / static_cast<size_t>(target.shape()[0]);
  const size_t bytes = count * SizeOf(type);
  // In the order of the rows, so of equal indices the last kUpdate stays.
  for (size_t i = 0; i < slices.indices.size(); ++i) {
    ApplyRow(op, type, count,
             target.mutable_bytes().data() +
                 static_cast<size_t>(slices.indices[i]) * bytes,
             slices.values.bytes().data() + i * bytes);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::strategy
