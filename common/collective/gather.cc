#include "common/collective/gather.h"

#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"

namespace lockstep {
namespace {

absl::Status CheckGather(absl::Span<const Value> values, int64_t axis) {
  if (values.empty()) {
    return absl::InvalidArgumentError("there is no value to gather");
  }
  for (const Value& value : values) LOCKSTEP_RETURN_IF_ERROR(value.Check());
  const std::vector<int64_t>& first = values[0].shape();
  if (axis < 0 || axis >= static_cast<int64_t>(first.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis is ", axis, ", but must be at least 0 and below ",
                     first.size(), ", the rank of ", values[0].Description()));
  }
  for (size_t r = 1; r < values.size(); ++r) {
    std::vector<int64_t> shape = values[r].shape();
    const bool same_rank = shape.size() == first.size();
    if (same_rank)
      shape[static_cast<size_t>(axis)] = first[static_cast<size_t>(axis)];
    if (same_rank && shape == first && values[r].type() == values[0].type()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "rank 0 has ", values[0].Description(), ", rank ", r, " has ",
        values[r].Description(), "; they may differ only along axis ", axis));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Value> Gather(absl::Span<const Value> values, int64_t axis) {
  LOCKSTEP_RETURN_IF_ERROR(CheckGather(values, axis));
  const auto place = static_cast<size_t>(axis);
  std::vector<int64_t> shape = values[0].shape();
  size_t blocks = 1;  // before the axis
  for (size_t i = 0; i < place; ++i) blocks *= static_cast<size_t>(shape[i]);
  shape[place] = 0;
  for (const Value& value : values) {
    // Empty values may have any sizes beside a dimension of 0.
    if (__builtin_add_overflow(shape[place], value.shape()[place],
                               &shape[place])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the values have 2^63 elements or more along axis ",
                       axis, ", as ", value.Description(), " has"));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Value joined,
                            Value::Zeros(values[0].type(), std::move(shape)));
  // There may be any number of blocks without elements.
  if (joined.size() == 0) return joined;
  std::byte* out = joined.mutable_bytes().data();
  for (size_t block = 0; block < blocks; ++block) {
    for (const Value& value : values) {
      // The bytes of a value that belong to one index before the axis are
      // consecutive.
      const size_t size = value.bytes().size() / blocks;
      // std::memcpy() must not be called with the null pointer of an empty
      // value.
      if (size == 0) continue;
      std::memcpy(out, value.bytes().data() + block * size, size);
      out += size;
    }
  }
  return joined;
}

absl::StatusOr<Value> ToDense(const Slices& slices) {
  LOCKSTEP_RETURN_IF_ERROR(slices.values.Check());
  LOCKSTEP_RETURN_IF_ERROR(CheckIsNumber(slices.values.type()));
  if (!slices.dense_shape.has_value() || slices.dense_shape->empty()) {
    return absl::InvalidArgumentError(
        "slices of an unknown shape cannot be made dense; set dense_shape");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      Value dense, Value::Zeros(slices.values.type(), *slices.dense_shape));
  std::vector<int64_t> rows = *slices.dense_shape;
  rows[0] = static_cast<int64_t>(slices.indices.size());
  if (rows != slices.values.shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rows are ", slices.values.Description(), ", but ",
                     rows[0], " rows of ", dense.Description(), " are [",
                     absl::StrJoin(rows, ","), "]"));
  }
  const auto count = static_cast<size_t>((*slices.dense_shape)[0]);
  const size_t row = count == 0 ? 0 : dense.size() / count;
  const size_t bytes = row * SizeOf(dense.type());
  for (size_t i = 0; i < slices.indices.size(); ++i) {
    const int64_t index = slices.indices[i];
    if (index < 0 || index >= (*slices.dense_shape)[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", index, " is not in ", dense.Description()));
    }
    // Adds: a row may be there several times, as in TensorFlow's IndexedSlices.
    Combine(dense.type(), Arithmetic::kAdd, row,
            dense.mutable_bytes().data() + static_cast<size_t>(index) * bytes,
            slices.values.bytes().data() + i * bytes);
  }
  return dense;
}

}  // namespace lockstep
