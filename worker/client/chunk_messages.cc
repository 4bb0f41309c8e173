#include "worker/client/chunk_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/stream_copy.h"

namespace lockstep::worker {
namespace {

// Bytes of a row of so many; 0 if there is none.
size_t RowSize(const std::vector<int64_t>& ids,
               const std::vector<std::byte>& rows) {
  return ids.empty() ? 0 : rows.size() / ids.size();
}

}  // namespace

void StoreChunk(const TensorPayload& payload, const Chunk& chunk,
                const ParameterMemory& memory) {
  size_t slice = 0;
  size_t offset = 0;
  for (const ByteRange& range : chunk.ranges) {
    std::byte* to = memory.value(range.variable).data() + range.offset;
    for (size_t left = range.size; left > 0;) {
      const grpc::Slice& from = payload.slices[slice];
      const size_t piece = std::min(left, from.size() - offset);
      const auto* bytes =
          reinterpret_cast<const std::byte*>(from.begin()) + offset;
      // Large values would leave the caches before a pass reads them: see
      // kStreamFrom.
      if (payload.size < kStreamFrom) {
        std::memcpy(to, bytes, piece);
      } else {
        StreamCopy(piece, bytes, to);
      }
      to += piece;
      left -= piece;
      offset += piece;
      if (offset == from.size()) {
        ++slice;
        offset = 0;
      }
    }
  }
  // Other threads learn of the values after this: they must not see them late.
  FinishStreaming();
}

void AddAbsent(const Chunk& chunk, absl::Span<const uint8_t> absent,
               v1::PushHeader& header) {
  for (size_t i = 0; i < chunk.ranges.size(); ++i) {
    if (absent[chunk.ranges[i].variable] == 0) continue;
    header.add_absent(chunk.first_part + static_cast<int>(i));
  }
}

std::vector<grpc::Slice> ChunkGradients(const Chunk& chunk,
                                        absl::Span<const uint8_t> absent,
                                        const ParameterMemory& memory,
                                        GradientType type) {
  std::vector<grpc::Slice> payload;
  if (type == GradientType::kBFloat16) {
    size_t size = 0;
    for (const ByteRange& range : chunk.ranges) {
      if (absent[range.variable] == 0) size += range.size;
    }
    FilledSlice packed(size / sizeof(float) * kBFloat16Size);
    std::byte* to = packed.memory;
    for (const ByteRange& range : chunk.ranges) {
      if (absent[range.variable] != 0) continue;
      const size_t elements = range.size / sizeof(float);
      RoundToBFloat16(
          elements, memory.gradient(range.variable).data() + range.offset, to);
      to += elements * kBFloat16Size;
    }
    payload.push_back(std::move(packed.slice));
    return payload;
  }
  for (const ByteRange& range : chunk.ranges) {
    if (absent[range.variable] != 0) continue;
    payload.push_back(UnownedSlice(
        memory.gradient(range.variable).data() + range.offset, range.size));
  }
  return payload;
}

void AddRows(const RoutedRows& routed, v1::RowIds& ids) {
  ids.mutable_ids()->Add(routed.rows.begin(), routed.rows.end());
}

void AddCounts(const Part& part, const RoutedRows& routed,
               const ParameterMemory& memory, v1::RowIds& ids) {
  const RowSum* const sum = memory.row_sum(part.variable);
  if (sum == nullptr) return;
  for (const size_t place : routed.places) {
    ids.add_counts(static_cast<int32_t>(sum->counts[place]));
  }
}

grpc::Slice RowGradients(const Part& part, const RoutedRows& routed,
                         const ParameterMemory& memory, GradientType type) {
  const TableRows& rows = memory.rows(part.variable);
  const RowSum* const sum = memory.row_sum(part.variable);
  const std::vector<std::byte>& gradients =
      sum == nullptr ? rows.gradients : sum->gradients;
  const size_t size = RowSize(sum == nullptr ? rows.ids : sum->ids, gradients);
  const bool rounded = type == GradientType::kBFloat16;
  const size_t elements = size / sizeof(float);
  const size_t sent = rounded ? elements * kBFloat16Size : size;
  FilledSlice filled(routed.places.size() * sent);
  std::byte* to = filled.memory;
  for (const size_t place : routed.places) {
    const std::byte* from = gradients.data() + place * size;
    if (rounded) {
      RoundToBFloat16(elements, from, to);
    } else {
      std::memcpy(to, from, size);
    }
    to += sent;
  }
  return filled.slice;
}

absl::Status StoreRows(const TensorPayload& payload, const Part& part,
                       const RoutedRows& routed, ParameterMemory& memory) {
  const TableRows& rows = memory.rows(part.variable);
  const size_t size = RowSize(rows.ids, rows.values);
  if (payload.size != routed.places.size() * size) {
    return absl::InternalError(absl::StrCat("Pull answered ", payload.size,
                                            " bytes for ", routed.places.size(),
                                            " rows of ", size));
  }
  // The payload may be cut anywhere, also within a row; a contiguous copy lets
  // rows be taken by offset. Rows are few.
  std::vector<std::byte> bytes(payload.size);
  payload.CopyTo(bytes.data());
  const std::byte* from = bytes.data();
  const absl::Span<std::byte> values = memory.value(part.variable);
  for (const size_t place : routed.places) {
    std::memcpy(values.data() + place * size, from, size);
    from += size;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
