#include "chief/traces/chief_spans.h"

#include <optional>

#include "common/cluster/task_id.h"

namespace lockstep::chief {

void RecordTake(SpanRecorder& spans, int64_t began, int server, int64_t step,
                int64_t attempt) {
  spans.Add({.kind = SpanKind::kTake,
             .attempt = SpanAttempt(attempt),
             .peer = server,
             .step = step,
             .begin = began,
             .end = spans.Now()});
}

void RecordCommit(SpanRecorder& spans, int64_t began, int64_t step,
                  int64_t attempt) {
  spans.Add({.kind = SpanKind::kOrderCommit,
             .attempt = SpanAttempt(attempt),
             .step = step,
             .begin = began,
             .end = spans.Now()});
}

void RecordDeath(SpanRecorder& spans, const std::string& task, int64_t step) {
  const std::optional<TaskId> dead = TaskId::FromString(task);
  if (!dead.has_value() || dead->type != TaskType::kWorker) return;
  const int64_t now = spans.Now();
  spans.Add({.kind = SpanKind::kDeath,
             .peer = dead->index,
             .step = step,
             .begin = now,
             .end = now});
}

}  // namespace lockstep::chief
