#include "tests/benchmark/straggler_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace lockstep::benchmark {
namespace {

constexpr int kNeeded = 4;

Candidate Base(const StragglerOptions& options, int workers) {
  Candidate base;
  base.bytes = options.bytes;
  base.workers = workers;
  base.aggregate = kNeeded;
  base.warmup = options.warmup;
  base.steps = options.steps;
  base.compute_ms = options.compute_ms;
  base.compatible = options.compatible;
  base.initial_tokens = options.initial_tokens;
  return base;
}

Candidate Slow(Candidate candidate, double factor) {
  candidate.slow_factor = factor;
  return candidate;
}

Candidate Absent(Candidate candidate) {
  candidate.last_absent = true;
  return candidate;
}

// The goals hold for strict mode and 50 ms.
double Goal(const StragglerOptions& options, double goal) {
  return options.compatible || options.compute_ms != 50 ? 0 : goal;
}

// By round: the mean time of a step, or of kNeeded gradients.
std::vector<double> Times(const StragglerCase& straggler,
                          const Measured& measured) {
  std::vector<double> times = RoundValues(measured, Metric::kMeanStepMs);
  if (!straggler.per_gradient) return times;
  for (size_t round = 0; round < times.size(); ++round) {
    const double gradients = straggler.candidate.tuned
                                 ? measured.rounds[round].gradients
                                 : straggler.candidate.aggregate;
    times[round] *= kNeeded / gradients;
  }
  return times;
}

// The ratio to the first case, round by round, or to the case's unit, or to the
// best of other cases.
double Ratio(const std::vector<StragglerCase>& cases,
             const std::vector<Measured>& measured, size_t i) {
  if (!cases[i].best_of.empty()) {
    double best = std::numeric_limits<double>::infinity();
    for (const size_t other : cases[i].best_of) {
      best = std::min(best, MeasuredMs(cases[other], measured[other]));
    }
    return MeasuredMs(cases[i], measured[i]) / best;
  }
  if (cases[i].per_gradient) {
    const std::vector<double> first = Times(cases[0], measured[0]);
    std::vector<double> ratios = Times(cases[i], measured[i]);
    for (size_t round = 0; round < ratios.size(); ++round) {
      ratios[round] /= first[round];
    }
    return Median(std::move(ratios));
  }
  if (cases[i].unit_ms > 0) {
    return MeasuredMs(cases[i], measured[i]) / cases[i].unit_ms;
  }
  return Median(RoundRatios(measured[i], measured[0], Metric::kMeanStepMs));
}

constexpr int kShares = 8;    // of a shared step
constexpr int kNumbers = 16;  // the micro-batches that they are made of

Candidate SharedBase(const StragglerOptions& options, int workers) {
  Candidate base = Base(options, workers);
  base.aggregate = 0;
  base.numbers = kNumbers;
  base.push = options.push;
  base.compute_ms = options.compute_ms * kShares / kNumbers;
  return base;
}

std::vector<StragglerCase> SharedCases(const StragglerOptions& options) {
  // Four workers that compute without a break.
  const double unit = static_cast<double>(options.compute_ms * kShares) / 4;
  const Candidate four = SharedBase(options, 4);
  Candidate slow = four;
  slow.slow_factor = 4;
  Candidate two_kinds = SharedBase(options, 6);
  two_kinds.slow_workers = 4;
  two_kinds.slow_factor = 2;
  Candidate hangs = four;
  hangs.hang_ms = 10000;
  hangs.hang_every_ms = 30000;
  hangs.steps = 4 * options.steps;
  Candidate lognormal = four;
  lognormal.sigma = 0.5;
  Candidate dies = four;
  dies.kill_every_ms = 30000;
  dies.steps = 5 * options.steps;
  return {
      {"4 equal workers", four, "1.00", Goal(options, 1.05), unit},
      {"4 workers, one 4x slower", slow, "1.23", Goal(options, 1.35), unit},
      {"6 workers, 4 of them of half speed", two_kinds, "1.00",
       Goal(options, 1.12), unit},
      {"4 workers, one hangs 10 s of 40", hangs, "1.07", Goal(options, 1.15),
       unit},
      {"4 workers, times lognormal, 0.5", lognormal, "1.00",
       Goal(options, 1.10), unit},
      {"4 workers, one killed each 30 s", dies, "1.00", Goal(options, 1.15),
       unit},
  };
}

std::vector<StragglerCase> TunedCases(const StragglerOptions& options) {
  Candidate equal = Base(options, kNeeded);
  Candidate four = equal;
  four.tuned = true;
  // The chief has to know the workers' times.
  four.warmup = std::max<int64_t>(options.warmup, 100);
  Candidate hangs = four;
  hangs.hang_ms = 10000;
  hangs.hang_every_ms = 30000;
  hangs.steps = 10 * options.steps;
  Candidate dies = four;
  dies.kill_every_ms = 30000;
  dies.steps = 10 * options.steps;
  Candidate lognormal = four;
  lognormal.sigma = 0.5;
  lognormal.steps = 2 * options.steps;
  std::vector<StragglerCase> cases = {
      {"4 equal workers, none a backup", equal, "1.00", Goal(options, 53), 0,
       true},
      {"4 equal workers", four, "1.00", Goal(options, 1.02), 0, true},
      {"4 workers, one 4x slower", Slow(four, 4), "1.23", Goal(options, 1.4), 0,
       true},
      {"4 workers, one hangs 10 s of 40", hangs, "1.07", Goal(options, 1.15), 0,
       true},
      {"4 workers, one killed each 30 s", dies, "1.00", Goal(options, 1.2), 0,
       true},
  };
  std::vector<size_t> fixed;
  for (int backups = 0; backups <= 2; ++backups) {
    Candidate some = lognormal;
    some.tuned = false;
    some.aggregate = kNeeded - backups;
    fixed.push_back(cases.size());
    cases.push_back({absl::StrCat("lognormal, 0.5, ", backups, " backups"),
                     some, "1.00", 0, 0, true});
  }
  cases.push_back({"lognormal, 0.5, AUTO / best of these", lognormal, "",
                   Goal(options, 1.03), 0, true, fixed});
  return cases;
}

std::string GoalText(const StragglerCase& straggler, bool first) {
  if (straggler.goal == 0) return "-";
  const bool in_ms = first && straggler.unit_ms == 0;
  return absl::StrCat("<= ", straggler.goal, in_ms ? " ms" : "");
}

std::string Verdict(const StragglerCase& straggler, double value) {
  if (straggler.goal == 0) return "-";
  return value <= straggler.goal ? "yes" : "NO";
}

}  // namespace

std::vector<StragglerCase> StragglerCases(const StragglerOptions& options) {
  if (options.shared) return SharedCases(options);
  if (options.tuned) return TunedCases(options);
  const Candidate five = Base(options, kNeeded + 1);
  return {
      {"4 equal workers", Base(options, kNeeded), "58.6 ms, 110-170 ms",
       Goal(options, 53)},
      {"5 equal workers, 4 needed", five, "", 0},
      {"5 workers, one 4x slower", Slow(five, 4), "1.29, 3.0",
       Goal(options, 1.1)},
      {"5 workers, one 10x slower", Slow(five, 10), "1.39", Goal(options, 1.1)},
      {"5 workers, one dead from the start", Absent(five), "1.42, 3.2",
       Goal(options, 1.05)},
  };
}

double MeasuredMs(const StragglerCase& straggler, const Measured& measured) {
  return Median(Times(straggler, measured));
}

std::string StragglerTable(const std::vector<StragglerCase>& cases,
                           const std::vector<Measured>& measured) {
  constexpr char kFormat[] = "%-36s  %9s  %7s  %6s  %-9s  %-4s  %s\n";
  std::string text = absl::StrFormat(
      kFormat, "case", "median ms", "mean ms", "ratio", "goal", "met",
      cases[0].unit_ms > 0 || cases[0].per_gradient ? "ideal ratio"
                                                    : "TensorFlow");
  for (size_t i = 0; i < cases.size(); ++i) {
    const double median = MedianRound(measured[i], Metric::kStepMs);
    const double mean = MedianRound(measured[i], Metric::kMeanStepMs);
    const double ratio = Ratio(cases, measured, i);
    absl::StrAppend(
        &text,
        absl::StrFormat(
            kFormat, cases[i].what, absl::StrFormat("%.1f", median),
            absl::StrFormat("%.1f", mean), absl::StrFormat("%.2f", ratio),
            GoalText(cases[i], i == 0),
            Verdict(cases[i], i == 0 && cases[i].unit_ms == 0 ? mean : ratio),
            cases[i].reference.empty() ? "-" : cases[i].reference));
  }
  return text;
}

std::string StragglerLines(const std::vector<StragglerCase>& cases,
                           const std::vector<Measured>& measured) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Candidate& candidate = cases[i].candidate;
    nlohmann::ordered_json line;
    line["case"] = cases[i].what;
    line["mode"] = candidate.compatible    ? "compatible"
                   : candidate.numbers > 0 ? "shared"
                   : candidate.tuned       ? "auto"
                                           : "strict";
    if (candidate.initial_tokens >= 0) {
      line["initial_tokens"] = candidate.initial_tokens;
    }
    line["median_ms"] = MedianRound(measured[i], Metric::kStepMs);
    line["mean_ms"] = MedianRound(measured[i], Metric::kMeanStepMs);
    if (candidate.tuned) {
      for (const RunRecord& round : measured[i].rounds) {
        line["round_gradients"].push_back(round.gradients);
      }
    }
    line["round_mean_ms"] = RoundValues(measured[i], Metric::kMeanStepMs);
    const char* name = !cases[i].best_of.empty() ? "ratio_to_best_fixed"
                       : cases[i].unit_ms > 0    ? "ratio_to_ideal_of_equal"
                                                 : "ratio_to_equal";
    line[name] = Ratio(cases, measured, i);
    absl::StrAppend(&text, line.dump(), "\n");
  }
  return text;
}

}  // namespace lockstep::benchmark
