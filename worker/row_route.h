#ifndef LOCKSTEP_WORKER_ROW_ROUTE_H_
#define LOCKSTEP_WORKER_ROW_ROUTE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan.h"

namespace lockstep {

// RoutedRows says which of a pass's rows of a table are in one part of it.
struct RoutedRows {
  std::vector<size_t> places;  // in the list of the pass, ascending
  std::vector<int64_t> rows;   // the same rows, counted within the part
};

// Finds the rows `ids` of a table, ascending and without repetition, that are
// in `part`; `row_width` counts elements. Rows that no part has are in none.
RoutedRows RouteRows(const PlannedPart& part, int64_t row_width,
                     absl::Span<const int64_t> ids);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_ROW_ROUTE_H_
