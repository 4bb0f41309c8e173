#include "tests/benchmark/comparison_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::benchmark {
namespace {

std::vector<double> Values(const Row& row, const std::vector<Measured>& all) {
  const Measured* numerator = Find(all, row.numerator);
  if (numerator == nullptr) return {};
  if (!row.denominator.has_value()) return RoundValues(*numerator, row.metric);
  const Measured* denominator = Find(all, *row.denominator);
  if (denominator == nullptr) return {};
  return RoundRatios(*numerator, *denominator, row.metric);
}

// Returns "171.5 / 100.4", the medians of a ratio.
std::string Parts(const Row& row, const std::vector<Measured>& all) {
  const Measured* numerator = Find(all, row.numerator);
  if (numerator == nullptr || !row.denominator.has_value()) return "";
  const Measured* denominator = Find(all, *row.denominator);
  if (denominator == nullptr) return "";
  return absl::StrFormat("%.3g / %.3g ms", MedianRound(*numerator, row.metric),
                         MedianRound(*denominator, row.metric));
}

std::string GoalText(const std::optional<Goal>& goal) {
  if (!goal.has_value()) return "-";
  return absl::StrFormat("%s %.3g", goal->at_least ? ">=" : "<=", goal->limit);
}

std::string Verdict(const Row& row, const RowResult& result) {
  if (result.rounds == 0 || !row.goal.has_value()) return "-";
  return Met(*row.goal, result.median) ? "yes" : "NO";
}

std::string Line(const std::string& comparison, const std::string& what,
                 const std::string& figure, const std::string& range,
                 const std::string& goal, const std::string& met,
                 const std::string& parts) {
  return absl::StrFormat("%-14s  %-52s  %8s  %-15s  %-7s  %-4s  %s\n",
                         comparison, what, figure, range, goal, met, parts);
}

}  // namespace

const Measured* Find(const std::vector<Measured>& all,
                     const Candidate& candidate) {
  for (const Measured& measured : all) {
    if (measured.candidate == candidate) return &measured;
  }
  return nullptr;
}

RowResult Evaluate(const Row& row, const std::vector<Measured>& all) {
  const std::vector<double> values = Values(row, all);
  if (values.empty()) return {};
  const auto [lowest, highest] =
      std::minmax_element(values.begin(), values.end());
  return {Median(values), *lowest, *highest, static_cast<int>(values.size())};
}

bool Met(const Goal& goal, double value) {
  return goal.at_least ? value >= goal.limit : value <= goal.limit;
}

std::string ComparisonTable(const std::vector<Row>& rows,
                            const std::vector<Measured>& all) {
  std::string text =
      Line("comparison", "what", "figure", "rounds", "goal", "met", "");
  for (const Row& row : rows) {
    const RowResult result = Evaluate(row, all);
    const bool none = result.rounds == 0;
    absl::StrAppend(
        &text, Line(row.comparison, row.what,
                    none ? "-" : absl::StrFormat("%.3g", result.median),
                    none ? "-"
                         : absl::StrFormat("[%.3g, %.3g]", result.lowest,
                                           result.highest),
                    GoalText(row.goal), Verdict(row, result), Parts(row, all)));
  }
  return text;
}

}  // namespace lockstep::benchmark
