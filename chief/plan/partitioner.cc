#include "chief/plan/partitioner.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace lockstep::chief {
namespace {

std::string Text(absl::Span<const int64_t> numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

absl::Status Wrong(absl::string_view field, int64_t value,
                   absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", but must be ", allowed));
}

// The axis, counted from 0.
absl::StatusOr<size_t> FindAxis(const PartitionInput& input) {
  const auto rank = static_cast<int64_t>(input.shape.size());
  const int64_t axis = input.axis < 0 ? input.axis + rank : input.axis;
  if (axis >= 0 && axis < rank) return static_cast<size_t>(axis);
  return Wrong("partitioner.axis", input.axis,
               absl::StrCat("an axis of the shape ", Text(input.shape)));
}

absl::Status CheckKnown(const PartitionInput& input, int64_t least) {
  for (const int64_t dim : input.shape) {
    if (dim >= least) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a variable of shape ", Text(input.shape),
                     " cannot be cut by bytes: every dimension must be known "
                     "and at least ",
                     least));
  }
  return absl::OkStatus();
}

// Saturates: no variable has that many bytes.
int64_t Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return std::numeric_limits<int64_t>::max();
  }
  return product;
}

int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

Partition OneAxis(size_t rank, size_t axis, int64_t parts) {
  Partition partition(rank, 1);
  partition[axis] = parts;
  return partition;
}

}  // namespace

absl::StatusOr<Partition> FixedSizePartition(const PartitionInput& input,
                                             int64_t num_shards) {
  LOCKSTEP_ASSIGN_OR_RETURN(size_t axis, FindAxis(input));
  const int64_t dim = input.shape[axis];
  if (dim < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a variable of shape ", Text(input.shape),
        " cannot be cut: the length of axis ", axis, " is unknown"));
  }
  // A part has at least one row.
  return OneAxis(input.shape.size(), axis, std::min(num_shards, dim));
}

absl::StatusOr<Partition> AxisSizePartition(const PartitionInput& input,
                                            int64_t max_shard_bytes,
                                            int64_t max_shards) {
  if (max_shard_bytes < 1) {
    return Wrong("partitioner.max_shard_bytes", max_shard_bytes, "1 or more");
  }
  if (input.element_size < 1) {
    return Wrong("the size of an element", input.element_size, "1 or more");
  }
  if (max_shards < 0) {
    return Wrong("partitioner.max_shards", max_shards, "0 or more");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(size_t axis, FindAxis(input));
  LOCKSTEP_RETURN_IF_ERROR(CheckKnown(input, 1));
  int64_t slice_bytes = input.element_size;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    if (i != axis) slice_bytes = Multiply(slice_bytes, input.shape[i]);
  }
  // A slice that is larger than the limit is a part of its own.
  const int64_t slices = std::max<int64_t>(1, max_shard_bytes / slice_bytes);
  int64_t shards = DivideUp(input.shape[axis], slices);
  if (max_shards > 0) shards = std::min(shards, max_shards);
  return OneAxis(input.shape.size(), axis, shards);
}

absl::StatusOr<Partition> MinMaxPartition(const PartitionInput& input,
                                          int64_t max_partitions,
                                          int64_t min_slice_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(size_t axis, FindAxis(input));
  LOCKSTEP_RETURN_IF_ERROR(CheckKnown(input, 0));
  if (min_slice_bytes == 0) {
    return Wrong("partitioner.min_slice_bytes", 0, "1 or more");
  }
  int64_t bytes = input.element_size;
  for (const int64_t dim : input.shape) bytes = Multiply(bytes, dim);
  const int64_t slices =
      min_slice_bytes < 0 ? 0 : DivideUp(bytes, min_slice_bytes);
  // A negative min_slice_bytes gives 1 part, as in TensorFlow.
  const int64_t parts = std::min({input.shape[axis], max_partitions, slices});
  return OneAxis(input.shape.size(), axis, std::max<int64_t>(1, parts));
}

absl::Status CheckPartition(absl::Span<const int64_t> shape,
                            const Partition& partition) {
  if (shape.empty() || partition.size() != shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partition ", Text(partition), " of shape ", Text(shape),
        ": there must be one count per axis, and at least one axis"));
  }
  int cut_axes = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (partition[i] < 1 || partition[i] > shape[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "partition ", Text(partition), " of shape ", Text(shape), ": axis ",
          i, " must have from 1 to ", shape[i], " parts"));
    }
    if (partition[i] > 1) ++cut_axes;
  }
  if (cut_axes <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("partition ", Text(partition),
                   ": only one axis can be cut into several parts"));
}

absl::StatusOr<std::vector<SlicePart>> CutVariable(
    absl::Span<const int64_t> shape, const Partition& partition) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPartition(shape, partition));
  // At most one axis is cut, and it has the largest count.
  const auto most = std::max_element(partition.begin(), partition.end());
  const size_t axis = most - partition.begin();
  const int64_t parts = *most;
  std::vector<SlicePart> result;
  int64_t offset = 0;
  for (int64_t i = 0; i < parts; ++i) {
    SlicePart part{std::vector<int64_t>(shape.size(), 0),
                   {shape.begin(), shape.end()}};
    part.offset[axis] = offset;
    part.length[axis] = shape[axis] / parts + (i < shape[axis] % parts ? 1 : 0);
    offset += part.length[axis];
    result.push_back(std::move(part));
  }
  return result;
}

std::string PartName(const std::string& variable, size_t index) {
  return absl::StrCat(variable, "/part_", index);
}

}  // namespace lockstep::chief
