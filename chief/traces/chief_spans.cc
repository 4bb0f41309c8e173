#include "chief/traces/chief_spans.h"

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

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
  absl::string_view index = task;
  int worker = 0;
  if (!absl::ConsumePrefix(&index, "worker ") ||
      !absl::SimpleAtoi(index, &worker)) {
    return;
  }
  const int64_t now = spans.Now();
  spans.Add({.kind = SpanKind::kDeath,
             .peer = worker,
             .step = step,
             .begin = now,
             .end = now});
}

}  // namespace lockstep::chief
