#ifndef LOCKSTEP_SERVER_STATE_FILE_STATE_LAYOUT_H_
#define LOCKSTEP_SERVER_STATE_FILE_STATE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/numeric/dtype.h"
#include "common/plan/variable_spec.h"

namespace lockstep::server {

// PartSpec is a slice of a variable, the unit of placement and update.
//
// Units: elements, except for the stride.
struct PartSpec {
  int variable = 0;    // index in the model's list of variables
  int64_t offset = 0;  // of its first element, row-major
  int64_t count = 0;   // > 0
  DType dtype = DType::kFloat32;
  // Tables only: the number of elements of a row, and the distance in the table
  // from one row of the part to its next.
  int64_t row_width = 0;  // 0: no table
  int64_t row_stride = 1;
  // A growing table: rows have keys and are created one after the other.
  bool grows = false;
  // If every server has all parts: the index of the server that sums the
  // gradients of this part. -1: this server sums them. Always -1 if each part
  // is on one server only.
  int reducer = -1;

  bool is_table() const { return row_width > 0; }
  int64_t num_rows() const { return is_table() ? count / row_width : 0; }

  bool operator==(const PartSpec&) const = default;
};

// StateLayout gives the offset in a state file of each tensor of each part.
// Tensor 0 is the value, tensor k the k-th tensor beside it. Every tensor has
// one region per buffer, for the parts that have such a tensor:
//
//   header | fences | buffer 0: value, slot 1, .. | buffer 1: value, slot 1, ..
//   | logs | directories | counters
//
// Regions start at multiples of 2 MiB, parts at multiples of 64 bytes. If there
// are two buffers, each table has a RowLog, and a RowDirectory if it grows. The
// counters are two numbers of 8 bytes for each part: its updates, by the buffer
// that has the step of the record.
//
// Threads: immutable.
// Units:   bytes.
class StateLayout {
 public:
  static constexpr uint64_t kHeaderSize = 4096;
  static constexpr uint64_t kRegionAlignment = uint64_t{2} << 20;
  static constexpr uint64_t kPartAlignment = 64;

  // `num_tensors` has the number of tensors of each part, at least 1;
  // `num_buffers` is 2, or 1 if updates happen in place.
  //
  //   kInvalidArgument  no part, a part out of range, another number of tensors
  //                     than there are parts, another number of buffers, or one
  //                     of a growing table, or a file too large for 63 bits
  static absl::StatusOr<StateLayout> Make(std::vector<PartSpec> parts,
                                          std::vector<size_t> num_tensors,
                                          int num_buffers);

  const std::vector<PartSpec>& parts() const { return parts_; }
  size_t num_tensors(size_t part) const { return num_tensors_[part]; }
  int num_buffers() const { return num_buffers_; }
  uint64_t file_size() const { return file_size_; }

  // Offset of WorkerFences, which end where the first region begins.
  static constexpr uint64_t kFencesOffset = kHeaderSize;
  static constexpr uint64_t kFencesSize = kRegionAlignment - kHeaderSize;

  // Bytes of one tensor of the part.
  uint64_t TensorSize(size_t part) const;
  uint64_t TensorOffset(size_t part, size_t tensor, int buffer) const;

  // Bytes of the log of a part that is a table; 2 buffers.
  uint64_t LogSize(size_t part) const;
  uint64_t LogOffset(size_t part) const { return log_offsets_[part]; }

  // Bytes of the directory of a part that grows.
  uint64_t DirectorySize(size_t part) const;
  uint64_t DirectoryOffset(size_t part) const {
    return directory_offsets_[part];
  }

  // `buffer` is 0 or 1, whatever num_buffers() is.
  uint64_t CounterOffset(size_t part, int buffer) const {
    return counters_offset_ + (2 * part + buffer) * sizeof(uint64_t);
  }

 private:
  StateLayout() = default;
  absl::Status PlaceRegion(size_t tensor);
  absl::Status PlaceLogs();
  absl::Status PlaceDirectories();
  absl::Status PlaceCounters();

  std::vector<PartSpec> parts_;
  std::vector<size_t> num_tensors_;  // by part
  int num_buffers_ = 2;
  // By tensor, then part: its offset in buffer 0, meaningless for a part
  // without such a tensor.
  std::vector<std::vector<uint64_t>> offsets_;
  uint64_t buffer_size_ = 0;           // a multiple of kRegionAlignment
  std::vector<uint64_t> log_offsets_;  // of no meaning where there is none
  std::vector<uint64_t> directory_offsets_;  // likewise
  uint64_t counters_offset_ = 0;
  uint64_t file_size_ = 0;
};

// Returns a fingerprint of the variables and the layout: equal fingerprints can
// use the same file.
uint64_t LayoutHash(absl::Span<const VariableSpec> variables,
                    const StateLayout& layout);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_STATE_LAYOUT_H_
