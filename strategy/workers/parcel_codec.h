#ifndef LOCKSTEP_STRATEGY_WORKERS_PARCEL_CODEC_H_
#define LOCKSTEP_STRATEGY_WORKERS_PARCEL_CODEC_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/value.h"
#include "lockstep/v1/group.pb.h"

// Parcels of a group as messages.
namespace lockstep::strategy {

// Adds the headers of the leaves.
void EncodeLeaves(const std::vector<Leaf>& leaves, v1::ParcelHeader& header);

// The bytes of the payload of the leaves.
size_t PayloadSize(const std::vector<Leaf>& leaves);

// Calls `send` with the payload of the leaves, in pieces of at most 1 MiB,
// until it returns false.
void ForEachPiece(const std::vector<Leaf>& leaves,
                  absl::FunctionRef<bool(absl::Span<const std::byte>)> send);

// ParcelReader builds the leaves of a parcel from its pieces. It allocates
// memory for bytes that have arrived, not for the sizes that a header claims,
// so that a faulty header cannot exhaust memory.
//
// Threads: not thread-safe.
class ParcelReader {
 public:
  //   kInvalidArgument  a type or shape is not valid, or the number of indices
  //                     is not that of rows
  static absl::StatusOr<ParcelReader> Make(const v1::ParcelHeader& header);

  // The bytes that the pieces have not brought yet.
  size_t missing() const;

  // Takes the next piece of the payload.
  //
  //   kInvalidArgument  the pieces have more bytes than the leaves
  absl::Status Append(std::string_view piece);

  // Returns the leaves. Must be called once, after the last piece.
  //
  //   kInvalidArgument  the pieces have fewer bytes than the leaves
  absl::StatusOr<std::vector<Leaf>> Finish();

 private:
  // A run of bytes of the payload.
  struct Run {
    size_t bytes = 0;
    std::vector<std::byte> data = {};
  };
  struct Pending {
    ElementType type = ElementType::kFloat32;
    std::vector<int64_t> shape;
    bool is_slices = false;
    std::optional<std::vector<int64_t>> dense_shape;
    Run indices;
    Run values;
  };
  ParcelReader() = default;
  static absl::StatusOr<Pending> ToPending(const v1::LeafHeader& header);

  std::vector<Pending> leaves_;
  // The current run: 2 i for the indices of leaf i, 2 i + 1 for its values.
  size_t run_ = 0;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_PARCEL_CODEC_H_
