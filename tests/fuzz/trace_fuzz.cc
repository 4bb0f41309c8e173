// Arbitrary text as a file of recorded traces: it must be refused, or replayed
// with any differences.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/golden/replay.h"
#include "tests/golden/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenarios = lockstep::golden::ParseScenarios(text, "input");
  if (!scenarios.ok()) return 0;
  for (const auto& scenario : *scenarios) {
    lockstep::golden::ReplayScenario(scenario.json).status().IgnoreError();
  }
  return 0;
}
