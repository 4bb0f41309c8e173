#include "tests/benchmark/step_report.h"

#include <cmath>

#include "nlohmann/json.hpp"

namespace lockstep::benchmark {
namespace {

// Microseconds are what the clock is good for.
double Rounded(double ms) { return std::round(ms * 1000) / 1000; }

// The median over all rounds of what one call takes.
double CallMs(const Measured& measured, int64_t StepSample::*call) {
  std::vector<double> rounds;
  for (const auto& round : measured.rounds) {
    rounds.push_back(MedianMs(round, call));
  }
  return Rounded(Median(std::move(rounds)));
}

}  // namespace

std::vector<double> RoundMedians(const Measured& measured) {
  std::vector<double> medians;
  for (const auto& round : measured.rounds) {
    medians.push_back(MedianMs(round, &StepSample::total));
  }
  return medians;
}

double StepMs(const Measured& measured) {
  return Median(RoundMedians(measured));
}

std::string ReportLine(const Measured& measured, const Measured* tcp,
                       const RunSettings& settings,
                       const Circumstances& circumstances) {
  const bool lockstep = measured.candidate.system != "tcp";
  nlohmann::ordered_json line;
  line["system"] = measured.candidate.system;
  line["model"] = measured.candidate.model;
  line["bytes"] = measured.bytes;
  line["tensors"] = measured.tensors;
  line["workers"] = settings.workers;
  line["servers"] = lockstep ? settings.servers : 1;
  line["step_ms"] = Rounded(StepMs(measured));
  for (const double ms : RoundMedians(measured)) {
    line["round_ms"].push_back(Rounded(ms));
  }
  if (tcp != nullptr) {
    line["ratio_to_tcp"] = Rounded(StepMs(measured) / StepMs(*tcp));
  }
  if (lockstep) {
    line["pull_ms"] = CallMs(measured, &StepSample::pull);
    line["announce_ms"] = CallMs(measured, &StepSample::announce);
    line["push_ms"] = CallMs(measured, &StepSample::push);
    line["token_ms"] = CallMs(measured, &StepSample::token);
  }
  line["congestion_control"] = circumstances.congestion_control;
  line["system_congestion_control"] = circumstances.system_congestion_control;
  return line.dump();
}

}  // namespace lockstep::benchmark
