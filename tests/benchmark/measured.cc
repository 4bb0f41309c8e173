#include "tests/benchmark/measured.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "tests/benchmark/benchmark_model.h"

namespace lockstep::benchmark {
namespace {

double MiB(int64_t bytes) {
  return static_cast<double>(bytes) / (int64_t{1} << 20);
}

// The value and momentum's slot, of the previous and of the next step: the
// minimum state of a server.
int64_t StateBytes(const Measured& measured) {
  if (measured.candidate.system != "lockstep") return 2 * measured.bytes;
  return 4 * measured.bytes / measured.candidate.servers;
}

double CpuMs(const RunRecord& record) {
  return record.cpu_seconds * 1e3 /
         static_cast<double>(std::max<int64_t>(1, CountSteps(record.samples)));
}

double ModelsSent(const Measured& measured, const RunRecord& record) {
  const double workers = measured.candidate.workers;
  const auto steps =
      static_cast<double>(std::max<int64_t>(1, CountSteps(record.samples)));
  return static_cast<double>(record.sent_bytes) / steps / workers /
         static_cast<double>(measured.bytes);
}

double Value(const Measured& measured, const RunRecord& record, Metric metric) {
  const ProcessMemory& server = record.server;
  switch (metric) {
    case Metric::kStepMs:
      return MedianMs(record.samples, &StepSample::total);
    case Metric::kMeanStepMs:
      return MeanMs(record.samples, &StepSample::total);
    case Metric::kCpuMs:
      return CpuMs(record);
    case Metric::kServerMiB:
      return MiB(server.anonymous + server.file);
    case Metric::kSharedMiB:
      return MiB(server.shared - StateBytes(measured));
    case Metric::kPeakMiB:
      return MiB(server.peak - StateBytes(measured));
    case Metric::kModelsSent:
      return ModelsSent(measured, record);
  }
  return 0;
}

}  // namespace

absl::StatusOr<Measured> NothingMeasured(const Candidate& candidate) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(candidate.model, candidate.bytes));
  return Measured{candidate,
                  TotalBytes(variables),
                  static_cast<int64_t>(variables.size()),
                  {}};
}

std::vector<double> RoundValues(const Measured& measured, Metric metric) {
  std::vector<double> values;
  for (const RunRecord& record : measured.rounds) {
    values.push_back(Value(measured, record, metric));
  }
  return values;
}

double MedianRound(const Measured& measured, Metric metric) {
  return Median(RoundValues(measured, metric));
}

std::vector<double> RoundRatios(const Measured& numerator,
                                const Measured& denominator, Metric metric) {
  const std::vector<double> above = RoundValues(numerator, metric);
  const std::vector<double> below = RoundValues(denominator, metric);
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(above.size(), below.size()); ++i) {
    if (below[i] > 0) ratios.push_back(above[i] / below[i]);
  }
  return ratios;
}

}  // namespace lockstep::benchmark
