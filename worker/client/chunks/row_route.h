#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_ROW_ROUTE_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_ROW_ROUTE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/plan.h"
#include "common/plan/variable_spec.h"

namespace lockstep::worker {

// RoutedRows says which of a pass's rows of a table are in one part of it.
struct RoutedRows {
  std::vector<size_t> places;  // in the list of the pass, ascending
  // The same rows, counted within the part; of a growing table, their keys.
  std::vector<int64_t> rows;
};

// Finds the rows `ids` of `table`, ascending and without repetition, that are
// in `part` of it. Rows that no part has are in none.
RoutedRows RouteRows(const Part& part, const VariableSpec& table,
                     absl::Span<const int64_t> ids);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_ROW_ROUTE_H_
