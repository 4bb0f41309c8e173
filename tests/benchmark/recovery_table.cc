#include "tests/benchmark/recovery_table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

constexpr double kGoalMs = 2000;
constexpr double kReads = 3;

template <typename Get>
std::vector<double> Milliseconds(const RecoveryRow& row, Get get) {
  std::vector<double> values;
  for (const Recovery& round : row.rounds) {
    values.push_back(absl::ToDoubleMilliseconds(get(round)));
  }
  return values;
}

std::vector<double> Up(const RecoveryRow& row) {
  return Milliseconds(row, [](const Recovery& round) { return round.up; });
}

std::vector<double> SinceUp(const RecoveryRow& row) {
  return Milliseconds(
      row, [](const Recovery& round) { return round.going_on - round.up; });
}

std::vector<double> Read(const RecoveryRow& row) {
  return Milliseconds(
      row, [](const Recovery& round) { return round.read_checkpoint; });
}

}  // namespace

double RecoveryMs(const RecoveryRow& row) { return Median(SinceUp(row)); }

double RecoveryGoalMs(const RecoveryRow& row) {
  if (row.victim != Victim::kServerWithoutState) return kGoalMs;
  return std::max(kGoalMs, kReads * Median(Read(row)));
}

std::string RecoveryTable(const std::vector<RecoveryRow>& rows) {
  std::string text =
      absl::StrFormat("%-18s%8s%10s%14s  %-18s%10s%10s\n", "killed", "MB",
                      "up, ms", "going on, ms", "[range]", "read, ms", "goal");
  for (const RecoveryRow& row : rows) {
    const std::vector<double> since_up = SinceUp(row);
    if (since_up.empty()) continue;
    const auto [lowest, highest] =
        std::minmax_element(since_up.begin(), since_up.end());
    const double goal = RecoveryGoalMs(row);
    absl::StrAppendFormat(
        &text, "%-18s%8d%10.0f%14.0f  %-18s%10.0f%10.0f  %s\n",
        VictimName(row.victim), row.megabytes, Median(Up(row)), RecoveryMs(row),
        absl::StrFormat("[%.0f, %.0f]", *lowest, *highest), Median(Read(row)),
        goal, RecoveryMs(row) <= goal ? "yes" : "NO");
  }
  return text;
}

std::string RecoveryLines(const std::vector<RecoveryRow>& rows) {
  std::string text;
  for (const RecoveryRow& row : rows) {
    nlohmann::json line = {{"killed", VictimName(row.victim)},
                           {"megabytes", row.megabytes},
                           {"up_ms", Up(row)},
                           {"going_on_ms", SinceUp(row)},
                           {"median_ms", RecoveryMs(row)},
                           {"goal_ms", RecoveryGoalMs(row)}};
    if (row.victim == Victim::kServerWithoutState) {
      line["read_checkpoint_ms"] = Read(row);
    }
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace lockstep::benchmark
