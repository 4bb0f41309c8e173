#ifndef LOCKSTEP_CHIEF_PLAN_PARTITIONER_H_
#define LOCKSTEP_CHIEF_PLAN_PARTITIONER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

// TensorFlow's partitioners: they choose the axis along which a variable is
// cut, the number of parts, and their boundaries. Each part is a variable of
// its own for placement, accumulators and slots.
//
// Units: an axis below 0 counts from the last one; sizes count bytes, the rest
//        elements. A dimension of -1 is unknown.
namespace lockstep::chief {

struct PartitionInput {
  std::vector<int64_t> shape;
  int64_t element_size = 4;  // bytes
  int64_t axis = 0;
};

// The number of parts along each axis: 1 for all axes but one. TensorFlow's
// rules can return counts below 1; CheckPartition() refuses them.
using Partition = std::vector<int64_t>;

// Returns min(num_shards, dimension) parts.
//
//   kInvalidArgument  no such axis; its length is unknown
absl::StatusOr<Partition> FixedSizePartition(const PartitionInput& input,
                                             int64_t num_shards);

// Returns as few parts as possible of at most `max_shard_bytes` each, but of at
// least one slice of the axis, and at most `max_shards` parts (0: no limit).
//
//   kInvalidArgument  max_shard_bytes or an element below 1, max_shards below
//                     0, no such axis, a dimension that is 0 or unknown
absl::StatusOr<Partition> AxisSizePartition(const PartitionInput& input,
                                            int64_t max_shard_bytes,
                                            int64_t max_shards);

// Returns as many parts as possible of at least `min_slice_bytes` each: at
// least 1, and at most `max_partitions` and the dimension.
//
//   kInvalidArgument  no such axis, min_slice_bytes of 0, an unknown dimension
absl::StatusOr<Partition> MinMaxPartition(const PartitionInput& input,
                                          int64_t max_partitions,
                                          int64_t min_slice_bytes);

// Checks that a variable of this shape can be cut by `partition`.
//
//   kInvalidArgument  not one count per axis; a shape of rank 0 or unknown; a
//                     count below 1 or above its dimension; two axes cut
absl::Status CheckPartition(absl::Span<const int64_t> shape,
                            const Partition& partition);

// One part of a variable: a box, one number per axis.
struct SlicePart {
  std::vector<int64_t> offset;
  std::vector<int64_t> length;
};

// Returns the parts in order. When d rows are cut into k parts, the first d mod
// k parts have one row more.
//
// Errors: those of CheckPartition().
absl::StatusOr<std::vector<SlicePart>> CutVariable(
    absl::Span<const int64_t> shape, const Partition& partition);

// Returns the name of a part: "w/part_2" for "w" and 2.
std::string PartName(const std::string& variable, size_t index);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PLAN_PARTITIONER_H_
