#ifndef LOCKSTEP_STRATEGY_NCCL_PAYLOAD_H_
#define LOCKSTEP_STRATEGY_NCCL_PAYLOAD_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/value.h"

// The payload of a parcel is the bytes of its large dense leaves, one after the
// other. The payload travels by NCCL; the rest of the parcel, with a header for
// each leaf of the payload, travels by the wrapped group.
namespace lockstep::strategy {

// Returns `leaves` with each dense leaf of at least `small_bytes` bytes
// replaced by a header; empty leaves stay as they are.
std::vector<Leaf> WithoutPayload(const std::vector<Leaf>& leaves,
                                 size_t small_bytes);

// A parcel whose payload has not been received yet.
struct Incoming {
  std::vector<Leaf> leaves;     // those of the payload hold zeros
  std::vector<size_t> payload;  // their indices in `leaves`, ascending

  // The size of the payload in bytes.
  size_t bytes() const;
  // The memory of the payload's leaves; valid while `leaves` does not change.
  std::vector<absl::Span<std::byte>> memory();
};

// Reads the result of WithoutPayload(), and allocates the payload's memory.
//
//   kInvalidArgument  a header is not valid
absl::StatusOr<Incoming> ReadRest(const std::vector<Leaf>& rest);

// Returns the memory of the leaves that WithoutPayload() replaces.
std::vector<absl::Span<const std::byte>> PayloadOf(
    const std::vector<Leaf>& leaves, size_t small_bytes);

// Calls use(part, offset) for each piece of the concatenated spans of `memory`
// that lies in bytes [begin, end). `offset` counts from `begin`. Returns the
// first error of `use`.
template <typename Byte>
absl::Status ForEachPart(
    absl::Span<const absl::Span<Byte>> memory, size_t begin, size_t end,
    absl::FunctionRef<absl::Status(absl::Span<Byte>, size_t)> use) {
  size_t at = 0;  // of the leaf in the payload
  for (const absl::Span<Byte> leaf : memory) {
    const size_t first = std::max(begin, at);
    const size_t last = std::min(end, at + leaf.size());
    if (first < last) {
      absl::Status used =
          use(leaf.subspan(first - at, last - first), first - begin);
      if (!used.ok()) return used;
    }
    at += leaf.size();
  }
  return absl::OkStatus();
}

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_PAYLOAD_H_
