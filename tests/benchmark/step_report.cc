#include "tests/benchmark/step_report.h"

#include <cmath>

#include "nlohmann/json.hpp"

namespace lockstep::benchmark {
namespace {

using Json = nlohmann::ordered_json;

// Rounds to microseconds, the precision of the clock.
double Rounded(double ms) { return std::round(ms * 1000) / 1000; }

double RoundedMedian(const Measured& measured, Metric metric) {
  return Rounded(MedianRound(measured, metric));
}

// Returns the median over all rounds of the time of one call.
double CallMs(const Measured& measured, int64_t StepSample::*call) {
  std::vector<double> rounds;
  for (const RunRecord& round : measured.rounds) {
    rounds.push_back(MedianMs(round.samples, call));
  }
  return Rounded(Median(std::move(rounds)));
}

void AddCandidate(const Measured& measured, Json& line) {
  const Candidate& candidate = measured.candidate;
  line["system"] = candidate.system;
  line["model"] = candidate.model;
  line["bytes"] = measured.bytes;
  line["tensors"] = measured.tensors;
  line["workers"] = candidate.workers;
  line["servers"] = candidate.servers;
  if (candidate.aggregate > 0) {
    line["replicas_to_aggregate"] = candidate.aggregate;
  }
  if (!candidate.job_text.empty()) line["job"] = candidate.job_text;
  if (candidate.shared_memory) line["shared_memory"] = true;
}

void AddTimes(const Measured& measured, const Measured* tcp, Json& line) {
  line["step_ms"] = RoundedMedian(measured, Metric::kStepMs);
  line["mean_ms"] = RoundedMedian(measured, Metric::kMeanStepMs);
  for (const double ms : RoundValues(measured, Metric::kStepMs)) {
    line["round_ms"].push_back(Rounded(ms));
  }
  if (tcp != nullptr) {
    line["ratio_to_tcp"] =
        Rounded(Median(RoundRatios(measured, *tcp, Metric::kStepMs)));
  }
  if (measured.candidate.system != "lockstep") return;
  line["pull_ms"] = CallMs(measured, &StepSample::pull);
  line["announce_ms"] = CallMs(measured, &StepSample::announce);
  line["push_ms"] = CallMs(measured, &StepSample::push);
  line["token_ms"] = CallMs(measured, &StepSample::token);
}

}  // namespace

std::string ReportLine(const Measured& measured, const Measured* tcp,
                       const std::vector<std::string>& comparisons,
                       const Circumstances& circumstances) {
  Json line;
  AddCandidate(measured, line);
  AddTimes(measured, tcp, line);
  line["cpu_ms"] = RoundedMedian(measured, Metric::kCpuMs);
  line["models_sent"] = RoundedMedian(measured, Metric::kModelsSent);
  line["server_mib"] = RoundedMedian(measured, Metric::kServerMiB);
  line["server_shared_mib"] = RoundedMedian(measured, Metric::kSharedMiB);
  line["server_peak_mib"] = RoundedMedian(measured, Metric::kPeakMiB);
  line["comparisons"] = comparisons;
  line["congestion_control"] = circumstances.congestion_control;
  line["system_congestion_control"] = circumstances.system_congestion_control;
  return line.dump();
}

}  // namespace lockstep::benchmark
