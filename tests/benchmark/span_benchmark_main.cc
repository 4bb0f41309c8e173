// What it costs to record spans: one timer reads the clock twice and writes one
// span. A step of one float takes about 30 us, of which 1 % is 300 ns.

#include "benchmark/benchmark.h"
#include "common/trace/span_recorder.h"

namespace lockstep {
namespace {

SpanRecorder& Recorder() {
  return SpanRecorder::Of(SpanRecorder::Role::kWorker);
}

void ReadClock(::benchmark::State& state) {
  for (auto _ : state) ::benchmark::DoNotOptimize(Recorder().Now());
}
BENCHMARK(ReadClock);

void AddSpan(::benchmark::State& state) {
  Span span{.kind = SpanKind::kPull};
  for (auto _ : state) {
    ++span.step;
    Recorder().Add(span);
  }
}
BENCHMARK(AddSpan);

void TimeSpan(::benchmark::State& state) {
  for (auto _ : state) {
    const SpanTimer timer(&Recorder(), {.kind = SpanKind::kPull});
  }
}
BENCHMARK(TimeSpan);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
