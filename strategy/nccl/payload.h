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

// The rest of a parcel: dense leaves of at least `small_bytes`, but no empty
// ones, are replaced by headers.
std::vector<Leaf> WithoutPayload(const std::vector<Leaf>& leaves,
                                 size_t small_bytes);

// A parcel whose payload has yet to come.
struct Incoming {
  std::vector<Leaf> leaves;     // those of the payload have zeros
  std::vector<size_t> payload;  // places of its leaves, in their order

  // Bytes of the payload.
  size_t bytes() const;
  // The memory of its leaves, which must not move meanwhile.
  std::vector<absl::Span<std::byte>> memory();
};

// Reads the result of WithoutPayload(), and takes memory for the payload.
//
//   kInvalidArgument  headers that cannot be
absl::StatusOr<Incoming> ReadRest(const std::vector<Leaf>& rest);

// The memory of the payload of `leaves`, whose rest is WithoutPayload().
std::vector<absl::Span<const std::byte>> PayloadOf(
    const std::vector<Leaf>& leaves, size_t small_bytes);

// Calls use(part, offset) for the parts of `memory`, joined, that lie in
// [begin, end); the offset is that of the part behind `begin`. Stops at an
// error, and returns it.
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
