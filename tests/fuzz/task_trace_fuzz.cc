// A task's trace from the wire: refused, or a trace that goes through the wire
// again unchanged and whose path can be found.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/trace/codec/trace_codec.h"
#include "deploy/cli/spans/chrome_trace.h"
#include "deploy/cli/spans/explanation.h"
#include "deploy/cli/spans/explanation_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::v1::TaskTrace proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto trace = lockstep::FromProto(proto);
  if (!trace.ok()) return 0;
  const auto again = lockstep::FromProto(lockstep::ToProto(*trace));
  if (!again.ok() || again->spans != trace->spans) abort();
  if (again->task != trace->task || again->host != trace->host) abort();
  if (again->clock.offset != trace->clock.offset) abort();
  if (again->clock.error != trace->clock.error) abort();
  lockstep::cli::JobTrace job;
  job.tasks = {*trace, *trace, *trace};
  job.tasks[0].task = "ps 0";
  job.tasks[1].task = "worker 0";
  lockstep::cli::ChromeTraceJson(job);
  const auto explanation = lockstep::cli::Explain(job, 50);
  if (explanation.ok()) lockstep::cli::ExplanationText(*explanation);
  return 0;
}
