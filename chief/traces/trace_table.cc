#include "chief/traces/trace_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/trace/span_recorder.h"

namespace lockstep::chief {

uint64_t TraceTable::Begin(const std::vector<std::string>& tasks,
                           absl::Time at) {
  MutexLock lock(mutex_);
  open_ = true;
  at_ = at;
  traces_.clear();
  for (const std::string& task : tasks) traces_[task];
  // In a very large job kFewestSpans has precedence over kMaxBytes.
  const size_t share =
      kMaxBytes / sizeof(Span) / std::max<size_t>(traces_.size(), 1);
  max_spans_ = static_cast<uint32_t>(
      std::clamp<size_t>(share, kFewestSpans, kMostSpans));
  return ++id_;
}

void TraceTable::Forget(absl::Time now) {
  if (!open_ || now <= at_ + kKept) return;
  open_ = false;
  traces_.clear();
}

absl::Status TraceTable::CheckId(uint64_t id, absl::Time now) {
  Forget(now);
  if (open_ && id == id_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "there is no trace ", id,
      " any more: another was begun, or it is too old; begin one anew"));
}

std::optional<TraceTable::Wanted> TraceTable::WantedFrom(
    const std::string& task, absl::Time now) {
  MutexLock lock(mutex_);
  Forget(now);
  const auto found = traces_.find(task);
  if (found == traces_.end() || found->second.has_value()) return std::nullopt;
  return Wanted{id_, at_, max_spans_};
}

absl::Status TraceTable::Report(uint64_t id, TaskTrace trace, absl::Time now) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckId(id, now));
  const auto found = traces_.find(trace.task);
  if (found == traces_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(trace.task, " is not asked for a trace"));
  }
  // Rare spans are kept and reported in addition to the newest ones.
  const size_t most = max_spans_ + SpanRecorder::kRareSpans;
  if (trace.spans.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace.spans: ", trace.task, " hands ", trace.spans.size(),
                     " spans in; at most ", most));
  }
  if (!found->second.has_value()) found->second = std::move(trace);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TaskTrace>> TraceTable::Get(
    uint64_t id, const std::string& task, absl::Time now) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckId(id, now));
  const auto found = traces_.find(task);
  if (found == traces_.end()) {
    return absl::NotFoundError(absl::StrCat("trace ", id, " has no such task"));
  }
  return found->second;
}

}  // namespace lockstep::chief
