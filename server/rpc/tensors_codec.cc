#include "server/rpc/tensors_codec.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace lockstep::server {
namespace {

absl::StatusOr<Shard::ByteRange> FindRange(const v1::TensorSelector& selector,
                                           const Shard& shard) {
  return shard.FindRange(selector.parts().first_part(),
                         selector.parts().num_parts(), selector.first_element(),
                         selector.num_elements());
}

// Writes rows of a growing table.
absl::Status WriteRows(const v1::WritePartsHeader& header,
                       const TensorPayload& payload, Shard& shard) {
  const v1::TensorSelector& selector = header.selector();
  if (selector.parts().num_parts() != 1 || selector.first_element() != 0 ||
      selector.num_elements() != 0) {
    return absl::InvalidArgumentError(
        "keys are given, so the selector must name one part, and no elements");
  }
  std::vector<std::byte> bytes(payload.size);
  payload.CopyTo(bytes.data());
  const std::vector<int64_t> keys(header.keys().begin(), header.keys().end());
  return shard.state().WriteRows(selector.parts().first_part(),
                                 selector.tensor(), keys, bytes);
}

// The keys of the rows of a growing table in a snapshot.
absl::StatusOr<std::string> ReadKeys(const v1::TensorSelector& selector,
                                     const Snapshot& snapshot) {
  const int64_t count = selector.num_elements();
  const int part = selector.parts().first_part();
  const std::vector<int64_t> rows = snapshot.num_rows();
  if (selector.parts().num_parts() != 1 || part < 0 ||
      static_cast<size_t>(part) >= rows.size() || count < 0 ||
      count > rows[part]) {
    return absl::InvalidArgumentError(absl::StrCat(
        count, " keys of ", selector.parts().num_parts(), " parts from ", part,
        " on; name one part that grows, and no more keys than it has"));
  }
  std::vector<int64_t> keys(count);
  LOCKSTEP_RETURN_IF_ERROR(
      snapshot.ReadKeys(part, selector.first_element(), absl::MakeSpan(keys)));
  return std::string(reinterpret_cast<const char*>(keys.data()),
                     keys.size() * sizeof(int64_t));
}

}  // namespace

absl::Status WriteTensors(const v1::WritePartsHeader& header,
                          const TensorPayload& payload, Shard& shard) {
  if (header.keys_size() > 0) return WriteRows(header, payload, shard);
  LOCKSTEP_ASSIGN_OR_RETURN(const Shard::ByteRange range,
                            FindRange(header.selector(), shard));
  if (payload.size != range.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload has ", payload.size,
                     " bytes; the selected range has ", range.size));
  }
  // The payload may be in slices that end in the middle of an element.
  std::vector<std::byte> bytes(range.size);
  payload.CopyTo(bytes.data());
  absl::Span<const std::byte> left = bytes;
  for (int i = 0; i < range.num_parts; ++i) {
    const int part = range.first_part + i;
    // A selector of several parts names whole ones.
    const size_t size =
        range.num_parts == 1 ? range.size : shard.PartSize(part);
    LOCKSTEP_RETURN_IF_ERROR(shard.state().Write(
        part, header.selector().tensor(), range.first, left.first(size)));
    left.remove_prefix(size);
  }
  return absl::OkStatus();
}

absl::StatusOr<grpc::ByteBuffer> ReadTensors(const v1::TensorSelector& selector,
                                             const Shard& shard) {
  v1::ReadSnapshotHeader header;
  if (selector.keys()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const Snapshot> snapshot,
                              shard.snapshot());
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string keys,
                              ReadKeys(selector, *snapshot));
    header.set_global_step(snapshot->step());
    const grpc::Slice payload(keys);
    return EncodeTensorMessage(header, absl::MakeConstSpan(&payload, 1));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Shard::ByteRange range,
                            FindRange(selector, shard));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const Snapshot> snapshot,
                            shard.snapshot());
  // An empty read checks the selector before memory is allocated for the
  // answer.
  const int tensor = selector.tensor();
  Shard::ByteRange nothing = range;
  nothing.size = 0;
  std::byte none{};  // memcpy() must not be given a null pointer
  LOCKSTEP_RETURN_IF_ERROR(
      snapshot->Read(nothing, tensor, absl::MakeSpan(&none, 0)));
  if (range.size > kLargestAnswer) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer has at most ", kLargestAnswer,
                     " bytes; ask for fewer than ", range.size));
  }
  FilledSlice filled(range.size);
  LOCKSTEP_RETURN_IF_ERROR(
      snapshot->Read(range, tensor, {filled.memory, range.size}));
  header.set_global_step(snapshot->step());
  return EncodeTensorMessage(header, absl::MakeConstSpan(&filled.slice, 1));
}

}  // namespace lockstep::server
