#include "worker/client/row_codec.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/numeric/bfloat16.h"

namespace lockstep {
namespace {

// Bytes of a row. Where there is none, nobody asks.
size_t RowSize(const TableRows& rows) {
  return rows.ids.empty() ? 0 : rows.values.size() / rows.ids.size();
}

}  // namespace

void AddRows(const RoutedRows& routed, v1::RowIds& ids) {
  ids.mutable_ids()->Add(routed.rows.begin(), routed.rows.end());
}

grpc::Slice RowGradients(const PlannedPart& part, const RoutedRows& routed,
                         const ParameterMemory& memory, GradientType type) {
  const TableRows& rows = memory.rows(part.variable);
  const size_t size = RowSize(rows);
  const bool rounded = type == GradientType::kBFloat16;
  const size_t elements = size / sizeof(float);
  const size_t sent = rounded ? elements * kBFloat16Size : size;
  FilledSlice filled(routed.places.size() * sent);
  std::byte* to = filled.memory;
  for (const size_t place : routed.places) {
    const std::byte* from = rows.gradients.data() + place * size;
    if (rounded) {
      RoundToBFloat16(elements, from, to);
    } else {
      std::memcpy(to, from, size);
    }
    to += sent;
  }
  return filled.slice;
}

absl::Status StoreRows(const TensorPayload& payload, const PlannedPart& part,
                       const RoutedRows& routed, ParameterMemory& memory) {
  const size_t size = RowSize(memory.rows(part.variable));
  if (payload.size != routed.places.size() * size) {
    return absl::InternalError(absl::StrCat("Pull answered ", payload.size,
                                            " bytes for ", routed.places.size(),
                                            " rows of ", size));
  }
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

}  // namespace lockstep
