#include "tests/benchmark/overlap_schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

// Steps to skip: an early pass still waits for transfers of the previous pass.
constexpr int64_t kSettling = 2;

// Where both take equally long, a step should not take much longer than one.
constexpr double kGoalBalance = 1;
constexpr double kGoal = 1.15;

int64_t BlocksOfARound(const OverlapOptions& options) {
  return 1 + 2 * static_cast<int64_t>(options.balances.size());
}

double Fastest(std::vector<double> values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

// A statistic of one field over all steps of a block.
using Statistic = double (*)(std::vector<double>);
double Of(const OverlapOptions& options,
          const std::vector<OverlapSample>& samples, const OverlapStep& which,
          double OverlapSample::*field, Statistic statistic) {
  std::vector<double> values;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (index % options.block < kSettling) continue;
    const OverlapStep step = StepAt(options, index);
    if (step.phase == which.phase && step.balance == which.balance &&
        step.round == which.round) {
      values.push_back(samples[i].*field);
    }
  }
  return statistic(std::move(values));
}

struct RoundTimes {
  double transfer = 0;
  double compute = 0;
  double serial = 0;
  double overlapped = 0;

  double slower() const { return std::max(compute, transfer); }
};

RoundTimes TimesOf(const OverlapOptions& options,
                   const std::vector<OverlapSample>& samples, size_t balance,
                   int round, Statistic statistic) {
  const auto of = [&](OverlapPhase phase, double OverlapSample::*field) {
    return Of(options, samples,
              {phase, phase == OverlapPhase::kTransfer ? 0 : balance, round},
              field, statistic);
  };
  return {of(OverlapPhase::kTransfer, &OverlapSample::step),
          of(OverlapPhase::kSerial, &OverlapSample::compute),
          of(OverlapPhase::kSerial, &OverlapSample::step),
          of(OverlapPhase::kOverlapped, &OverlapSample::step)};
}

}  // namespace

int64_t TotalSteps(const OverlapOptions& options) {
  return options.rounds * BlocksOfARound(options) * options.block;
}

OverlapStep StepAt(const OverlapOptions& options, int64_t index) {
  const int64_t block = index / options.block;
  const int round = static_cast<int>(block / BlocksOfARound(options));
  const int64_t of_round = block % BlocksOfARound(options);
  if (of_round == 0) return {OverlapPhase::kTransfer, 0, round};
  return {of_round % 2 == 1 ? OverlapPhase::kSerial : OverlapPhase::kOverlapped,
          static_cast<size_t>((of_round - 1) / 2), round};
}

double ShortestStep(const OverlapOptions& options, double compute,
                    double transfer) {
  return std::max(compute + transfer / options.layers,
                  transfer + compute / options.layers);
}

std::string OverlapReport(const OverlapOptions& options,
                          const std::vector<OverlapSample>& samples) {
  std::string report;
  for (size_t b = 0; b < options.balances.size(); ++b) {
    std::vector<double> transfer, compute, serial, overlapped;
    std::vector<double> ratios, fastest, shortest;
    for (int round = 0; round < options.rounds; ++round) {
      const RoundTimes times = TimesOf(options, samples, b, round, Median);
      const RoundTimes best = TimesOf(options, samples, b, round, Fastest);
      transfer.push_back(times.transfer);
      compute.push_back(times.compute);
      serial.push_back(times.serial / times.slower());
      overlapped.push_back(times.overlapped);
      ratios.push_back(times.overlapped / times.slower());
      fastest.push_back(best.overlapped / best.slower());
      shortest.push_back(ShortestStep(options, times.compute, times.transfer) /
                         times.slower());
    }
    const nlohmann::ordered_json line = {
        {"compute_over_transfer", options.balances[b]},
        {"layers", options.layers},
        {"bytes", options.bytes},
        {"forward_share", options.forward_share},
        {"spin", options.spin},
        {"transfer_ms", Median(transfer)},
        {"compute_ms", Median(compute)},
        {"step_ms", Median(overlapped)},
        {"ratio", Median(ratios)},
        {"round_ratios", ratios},
        {"fastest_ratio", Median(fastest)},
        {"shortest_ratio", Median(shortest)},
        {"serial_ratio", Median(serial)}};
    report += line.dump() + "\n";
  }
  return report;
}

std::string OverlapTable(const std::string& report) {
  std::string table = absl::StrFormat("%-19s %6s  %-18s %5s %7s %8s %5s\n",
                                      "compute : transfer", "ratio", "[range]",
                                      "least", "serial", "goal", "met");
  for (const absl::string_view line :
       absl::StrSplit(report, '\n', absl::SkipEmpty())) {
    const auto json = nlohmann::json::parse(line);
    const std::vector<double> rounds = json.at("round_ratios");
    const auto [low, high] = std::minmax_element(rounds.begin(), rounds.end());
    const double balance = json.at("compute_over_transfer");
    const double ratio = json.at("ratio");
    absl::StrAppendFormat(&table, "%-19g %6.2f  %-18s %5.2f %7.2f", balance,
                          ratio, absl::StrFormat("[%.2f, %.2f]", *low, *high),
                          json.at("shortest_ratio").get<double>(),
                          json.at("serial_ratio").get<double>());
    if (balance == kGoalBalance) {
      absl::StrAppendFormat(&table, " %8s %5s",
                            absl::StrFormat("<= %.2f", kGoal),
                            ratio <= kGoal ? "yes" : "NO");
    }
    table += "\n";
  }
  return table;
}

}  // namespace lockstep::benchmark
