// A trace that is accepted has times that can be drawn; a refusal is short. The
// same bytes are read as a law, which stands on the command line.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "deploy/cli/simulate/pass_law.h"
#include "deploy/cli/simulate/pass_trace.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  std::mt19937_64 random(1);
  const auto trace = lockstep::cli::ParsePassTrace(text, "trace");
  if (trace.ok()) {
    Require(!trace->empty());
    for (const std::vector<double>& worker : *trace) {
      const double drawn =
          lockstep::cli::PassLaw::Empirical(worker).Draw(random);
      Require(drawn > 0 && std::isfinite(drawn));
    }
  } else {
    Require(trace.status().message().size() < 2000);
  }
  const auto law = lockstep::cli::PassLaw::Parse(text);
  if (law.ok()) {
    const double drawn = law->Draw(random);
    Require(drawn > 0 && std::isfinite(drawn));
  } else {
    Require(law.status().message().size() < 2000);
  }
  (void)lockstep::cli::ParseSlowWorkers(text);
  (void)lockstep::cli::ParseRate(text);
  return 0;
}
