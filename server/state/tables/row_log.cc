#include "server/state/tables/row_log.h"

#include <algorithm>

#include "server/state/tables/stored_word.h"

namespace lockstep::server {

// A new file holds zeros. No log leads to step 0, so an all-zero head means
// that the log is not whole.
int64_t RowLog::step() const { return head_[0] > 0 ? head_[0] : kNone; }

absl::Span<const int64_t> RowLog::rows() const {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(head_[1], 0));
  return {head_ + 2, static_cast<size_t>(std::min(count, capacity_))};
}

void RowLog::Begin(absl::Span<const int64_t> rows) {
  // First: a process killed while the rows are written must not leave them
  // under the step of the previous log.
  StoreWord(&head_[0], kNone);
  head_[1] = static_cast<int64_t>(rows.size());
  std::copy(rows.begin(), rows.end(), head_ + 2);
}

void RowLog::Finish(int64_t step) { StoreWord(&head_[0], step); }

}  // namespace lockstep::server
