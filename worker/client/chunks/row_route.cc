#include "worker/client/chunks/row_route.h"

#include <algorithm>

namespace lockstep::worker {

namespace {

RoutedRows RouteKeys(const Part& part, int64_t row_width,
                     absl::Span<const int64_t> keys) {
  RoutedRows routed;
  for (size_t i = 0; i < keys.size(); ++i) {
    // The key alone decides among the row_stride parts of a growing table; the
    // quotient is the index of this part among them.
    if (PartOfKey(keys[i], part.row_stride) != part.offset / row_width) {
      continue;
    }
    routed.places.push_back(i);
    routed.rows.push_back(keys[i]);
  }
  return routed;
}

}  // namespace

RoutedRows RouteRows(const Part& part, const VariableSpec& table,
                     absl::Span<const int64_t> ids) {
  const int64_t row_width = RowWidth(table.shape);
  if (table.grows()) return RouteKeys(part, row_width, ids);
  const int64_t first = part.offset / row_width;
  const int64_t num_rows = part.count / row_width;
  // A part has rows first, first + stride, ...: the search ends behind the
  // last.
  const int64_t end = first + (num_rows - 1) * part.row_stride + 1;
  RoutedRows routed;
  const auto begin = std::lower_bound(ids.begin(), ids.end(), first);
  for (auto id = begin; id != ids.end() && *id < end; ++id) {
    if ((*id - first) % part.row_stride != 0) continue;
    routed.places.push_back(static_cast<size_t>(id - ids.begin()));
    routed.rows.push_back((*id - first) / part.row_stride);
  }
  return routed;
}

}  // namespace lockstep::worker
