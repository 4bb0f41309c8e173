#include "common/trace/span_recorder.h"

#include "absl/time/time.h"

namespace lockstep {
namespace {

bool IsRare(SpanKind kind) {
  return kind == SpanKind::kCheckpointCopy ||
         kind == SpanKind::kCheckpointWrite || kind == SpanKind::kDeath;
}

}  // namespace

SpanRecorder& SpanRecorder::Of(Role role) {
  // Never destroyed: threads may record while the process ends. Memory of roles
  // that this process does not have is never touched, see SpanRing.
  static auto* const worker = new SpanRecorder(kWorkerSpans, Clock::Real());
  static auto* const server = new SpanRecorder(kServerSpans, Clock::Real());
  static auto* const chief = new SpanRecorder(kChiefSpans, Clock::Real());
  if (role == Role::kWorker) return *worker;
  return role == Role::kServer ? *server : *chief;
}

int64_t SpanRecorder::Now() const { return absl::ToUnixNanos(clock_.Now()); }

void SpanRecorder::Add(const Span& span) {
  (IsRare(span.kind) ? rare_ : steps_).Add(span);
}

std::vector<Span> SpanRecorder::Newest(size_t most) const {
  std::vector<Span> spans = rare_.Newest(kRareSpans);
  const std::vector<Span> steps = steps_.Newest(most);
  spans.insert(spans.end(), steps.begin(), steps.end());
  return spans;
}

}  // namespace lockstep
