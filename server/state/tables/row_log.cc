#include "server/state/tables/row_log.h"

#include <algorithm>

#include "server/state/tables/stored_word.h"

namespace lockstep::server {

// A file that was just made is zeros: of a log, only step 0, to which none
// leads.
int64_t RowLog::step() const { return head_[0] > 0 ? head_[0] : kNone; }

absl::Span<const int64_t> RowLog::rows() const {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(head_[1], 0));
  return {head_ + 2, static_cast<size_t>(std::min(count, capacity_))};
}

void RowLog::Begin(absl::Span<const int64_t> rows) {
  StoreWord(&head_[0], kNone);
  head_[1] = static_cast<int64_t>(rows.size());
  std::copy(rows.begin(), rows.end(), head_ + 2);
}

void RowLog::Finish(int64_t step) { StoreWord(&head_[0], step); }

}  // namespace lockstep::server
