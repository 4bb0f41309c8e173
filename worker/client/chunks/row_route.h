#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_ROW_ROUTE_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_ROW_ROUTE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/plan.h"
#include "common/plan/variable_spec.h"

namespace lockstep::worker {

// RoutedRows lists the rows of a pass that are in one part of a table.
struct RoutedRows {
  // Indices into the list of the pass's rows, ascending.
  std::vector<size_t> places;
  // The rows as indexes within the part; in a growing table, their keys.
  std::vector<int64_t> rows;
};

// Returns the rows of `ids` that are in `part` of `table`. `ids` must be
// ascending without repetition. Rows that no part has are left out.
RoutedRows RouteRows(const Part& part, const VariableSpec& table,
                     absl::Span<const int64_t> ids);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_ROW_ROUTE_H_
