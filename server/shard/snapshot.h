#ifndef LOCKSTEP_SERVER_SHARD_SNAPSHOT_H_
#define LOCKSTEP_SERVER_SHARD_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/shard/parts/shard_state.h"
#include "server/state/file/fill_progress.h"

namespace lockstep::server {

// Snapshot is a copy of all committed tensors of a server, of one step. A
// checkpoint is read from it while the server trains on.
//
// Threads: immutable.
// Units:   sizes count bytes.
class Snapshot {
 public:
  // A range of one part, or whole consecutive parts.
  //
  // Units: `first` and `size` count bytes of the first part's beginning.
  struct ByteRange {
    int first_part = 0;
    int num_parts = 1;
    size_t first = 0;
    size_t size = 0;
  };
  // Copies `step`, which must stay the committed one meanwhile. Allocates
  // memory of the size of the state, and reports its progress to `progress`.
  //
  //   kResourceExhausted  no memory for the copy
  //   kInternal           a step was committed meanwhile
  //   kCancelled          `progress` was stopped
  static absl::StatusOr<std::shared_ptr<const Snapshot>> Take(
      ShardState& state, int64_t step, FillProgress& progress);

  int64_t step() const { return step_; }
  // As ShardState::Scalars().
  const std::vector<float>& scalars() const { return scalars_; }
  // By part: the number of its rows in the copy if the part grows, else 0.
  std::vector<int64_t> num_rows() const;

  // Copies keys of a part that grows, ascending, from the row `first` on.
  //
  //   kInvalidArgument  a part that does not grow, or beyond its rows
  absl::Status ReadKeys(int part, int64_t first,
                        absl::Span<int64_t> keys) const;

  // Copies a range of a tensor, or whole tensors of consecutive parts. A part
  // that grows has num_rows() rows, in the order of their keys, and is read by
  // itself.
  //
  //   kInvalidArgument  unknown tensor, `out` of another length, or beyond the
  //                     rows of a part that grows
  absl::Status Read(const ByteRange& range, int tensor,
                    absl::Span<std::byte> out) const;

 private:
  // A part. Each of its tensors has `size` bytes in the copy.
  struct Part {
    size_t size = 0;
    int num_tensors = 0;
    bool grows = false;
    // If the part grows: the keys of its rows, ascending, and their places.
    std::vector<int64_t> keys;
    std::vector<int64_t> rows;
  };

  explicit Snapshot(int64_t step) : step_(step) {}

  void AddParts(const ShardState& state);
  // Lays the tensors of all parts out, tensor after tensor. Returns the size of
  // the copy.
  size_t PlaceTensors();
  absl::Status CopyParts(const ShardState& state, FillProgress& progress);

  const int64_t step_;
  std::vector<float> scalars_;
  std::vector<Part> parts_;
  std::unique_ptr<std::byte[]> bytes_;
  // By tensor, then part. Parts that have no such tensor take no room.
  std::vector<std::vector<size_t>> offsets_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_SNAPSHOT_H_
