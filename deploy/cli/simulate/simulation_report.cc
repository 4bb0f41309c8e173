#include "deploy/cli/simulate/simulation_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/flags/wrap_text.h"
#include "deploy/cli/text/text_format.h"
#include "deploy/cli/text/text_table.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

// A long job goes on trying numbers that are about as good.
constexpr size_t kMostChanges = 6;

constexpr size_t kWidestPlot = 100;

// "50.3 ms", with three digits that count.
std::string Milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  const int digits = ms < 10 ? 3 : ms < 100 ? 2 : 1;
  return absl::StrFormat("%.*f ms", digits, ms);
}

std::string Percent(double fraction) {
  return absl::StrFormat("%.1f %%", 100 * fraction);
}

std::string Table(const Simulation& simulation, size_t width) {
  using Align = TextTable::Align;
  TextTable table({{"backups", Align::kLeft},
                   {"step", Align::kRight},
                   {"gradient", Align::kRight},
                   {"change", Align::kRight},
                   {"efficiency", Align::kRight},
                   {"wasted", Align::kRight}});
  const double first = simulation.runs[0].run.GradientSeconds();
  for (const PolicyRun& one : simulation.runs) {
    const double gradient = one.run.GradientSeconds();
    table.AddRow({one.policy, Milliseconds(one.run.StepSeconds()),
                  Milliseconds(gradient),
                  absl::StrFormat("%+.1f %%", 100 * (gradient / first - 1)),
                  Percent(simulation.Efficiency(one.run)),
                  Percent(one.run.WastedFraction())});
  }
  return table.Format(width);
}

std::string Plot(const Simulation& simulation, size_t width) {
  double longest = 0;
  for (const PolicyRun& one : simulation.runs) {
    longest = std::max(longest, one.run.GradientSeconds());
  }
  const size_t room =
      // The name, the bar's mark, the time and " best" take up to 24 columns.
      std::min(width, kWidestPlot) - std::min<size_t>(width, 24);
  std::string plot = "time per gradient\n";
  for (size_t i = 0; i < simulation.runs.size(); ++i) {
    const double seconds = simulation.runs[i].run.GradientSeconds();
    const auto bar = static_cast<size_t>(
        std::lround(seconds / longest * static_cast<double>(room)));
    absl::StrAppend(
        &plot,
        Clip(absl::StrFormat("%6s |%s %s%s", simulation.runs[i].policy,
                             std::string(bar, '#'), Milliseconds(seconds),
                             i == simulation.Best() ? " best" : ""),
             width),
        "\n");
  }
  return plot;
}

}  // namespace

size_t Simulation::Best() const {
  const auto best = std::min_element(
      runs.begin(), runs.end(), [](const PolicyRun& a, const PolicyRun& b) {
        return a.run.GradientSeconds() < b.run.GradientSeconds();
      });
  return static_cast<size_t>(best - runs.begin());
}

std::string SimulationText(const Simulation& simulation, size_t width) {
  std::string text =
      absl::StrCat(Table(simulation, width), "\n", Plot(simulation, width));
  for (size_t i = 0; i < simulation.changes.size(); ++i) {
    if (i == kMostChanges) {
      absl::StrAppend(&text, "and ", simulation.changes.size() - i,
                      " more changes, which --json has\n");
      break;
    }
    absl::StrAppend(
        &text,
        WrapText(absl::StrCat("AUTO at ", simulation.changes[i]), width, 2),
        "\n");
  }
  return text;
}

std::string SimulationJson(const Simulation& simulation) {
  nlohmann::ordered_json json;
  json["workers"] = simulation.workers;
  json["best_gradients_per_second"] = simulation.best_rate;
  for (const PolicyRun& one : simulation.runs) {
    json["policies"].push_back({{"backups", one.policy},
                                {"step_seconds", one.run.StepSeconds()},
                                {"gradient_seconds", one.run.GradientSeconds()},
                                {"efficiency", simulation.Efficiency(one.run)},
                                {"wasted", one.run.WastedFraction()},
                                {"deaths", one.run.deaths},
                                {"changes", one.run.changes},
                                {"replicas_to_aggregate", one.run.replicas}});
  }
  json["auto_changes"] = simulation.changes;
  return json.dump() + "\n";
}

}  // namespace lockstep::cli
