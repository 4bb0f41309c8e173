#include "common/membership/load_meter.h"

#include "common/memory/usable_memory.h"
#include "common/process/process_usage.h"

namespace lockstep {

ProcessLoad LoadMeter::Measure(absl::Time now) {
  const ProcessUsage usage = ReadProcessUsage();
  ProcessLoad load{.resident_bytes = usage.resident_bytes,
                   .memory_limit_bytes = static_cast<int64_t>(
                       UsableMemory::OfThisProcess().bytes)};
  const absl::Duration since = now - measured_;
  // Without a call before, `since` is infinite.
  if (since > absl::ZeroDuration() && since < absl::InfiniteDuration()) {
    load.processors =
        absl::FDivDuration(usage.processor_time - processor_time_, since);
  }
  measured_ = now;
  processor_time_ = usage.processor_time;
  return load;
}

}  // namespace lockstep
