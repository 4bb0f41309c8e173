#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/process/process.h"
#include "common/program/main_support.h"
#include "tests/benchmark/straggler_cases.h"
#include "tests/benchmark/straggler_simulation.h"

namespace lockstep::benchmark {
namespace {

struct Flags {
  StragglerOptions options;
  std::string mode = "strict";
  int rounds = 3;
  bool simulate = false;
  std::string overhead = "2500us";
  std::string push_overhead = "2500us";
};

void AddFlags(CLI::App& app, Flags& flags) {
  StragglerOptions& options = flags.options;
  app.add_option("--mode", flags.mode,
                 "strict: four workers are chosen for each step. compatible: "
                 "as TensorFlow's SyncReplicasOptimizer. shared: workers take "
                 "numbered micro-batches, eight shares a step. auto: the chief "
                 "chooses the gradients of a step.")
      ->check(CLI::IsMember({"strict", "compatible", "shared", "auto"}))
      ->capture_default_str();
  app.add_option("--initial_tokens", options.initial_tokens,
                 "Compatible mode: tokens that are there at the start; -1: as "
                 "many as gradients are needed, TensorFlow's default.")
      ->check(CLI::Range(-1, 64))
      ->capture_default_str();
  app.add_option("--push", options.push,
                 "Mode shared: micro-batches that a worker adds up before it "
                 "pushes, a power of two; 0: the chief chooses.")
      ->check(CLI::IsMember({0, 1, 2, 4, 8, 16}))
      ->capture_default_str();
  app.add_option("--compute_ms", options.compute_ms,
                 "Milliseconds that a worker sleeps in place of computing.")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  app.add_option("--steps", options.steps,
                 "Global steps of a round that are measured.")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup,
                 "Global steps before the measured ones, in each round.")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--bytes", options.bytes, "Size of the model.")
      ->check(CLI::Range(4, 1 << 30))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds,
                 "How often each case is measured, in turn.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI::Option& simulate = *app.add_flag(
      "--simulate", flags.simulate,
      "Print a second table, of the same cases in lockstep simulate.");
  app.add_option("--overhead", flags.overhead,
                 "Of simulated steps: transfer, update, commit.")
      ->needs(&simulate)
      ->capture_default_str();
  app.add_option("--push_overhead", flags.push_overhead,
                 "Of a simulated pass or micro-batch, besides computing.")
      ->needs(&simulate)
      ->capture_default_str();
}

absl::StatusOr<SimulatedCosts> CostsOf(const Flags& flags) {
  SimulatedCosts costs;
  if (absl::ParseDuration(flags.overhead, &costs.overhead) &&
      absl::ParseDuration(flags.push_overhead, &costs.push_overhead) &&
      costs.overhead >= absl::ZeroDuration() &&
      costs.push_overhead >= absl::ZeroDuration()) {
    return costs;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--overhead is ", flags.overhead, " and --push_overhead ",
      flags.push_overhead, ", but both must be durations such as 2500us"));
}

// Prints the cases with the times that the simulator expects.
absl::Status PrintAgreement(const std::vector<StragglerCase>& cases,
                            const std::vector<Measured>& measured,
                            const SimulatedCosts& costs) {
  std::vector<std::optional<double>> simulated;
  for (const StragglerCase& straggler : cases) {
    LOCKSTEP_ASSIGN_OR_RETURN(simulated.emplace_back(),
                              SimulatedMs(straggler, costs));
  }
  std::cerr << "\n" << AgreementTable(cases, measured, simulated);
  return absl::OkStatus();
}

absl::Status Measure(Flags& flags) {
  flags.options.compatible = flags.mode == "compatible";
  flags.options.shared = flags.mode == "shared";
  flags.options.tuned = flags.mode == "auto";
  LOCKSTEP_ASSIGN_OR_RETURN(const SimulatedCosts costs, CostsOf(flags));
  const std::vector<StragglerCase> cases = StragglerCases(flags.options);
  std::vector<Measured> all;
  for (const StragglerCase& straggler : cases) {
    LOCKSTEP_ASSIGN_OR_RETURN(Measured measured,
                              NothingMeasured(straggler.candidate));
    all.push_back(std::move(measured));
  }
  for (int round = 0; round < flags.rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(RunRecord record, RunOnce(cases[i].candidate));
      std::cerr << "round " << round + 1 << "/" << flags.rounds << ": "
                << cases[i].what << ": "
                << MeanMs(record.samples, &StepSample::total) << " ms";
      if (record.gradients > 0) {
        std::cerr << ", " << record.gradients << " gradients a step";
      }
      std::cerr << std::endl;
      all[i].rounds.push_back(std::move(record));
    }
  }
  std::cout << StragglerLines(cases, all) << std::flush;
  std::cerr << "\n" << StragglerTable(cases, all);
  return flags.simulate ? PrintAgreement(cases, all, costs) : absl::OkStatus();
}

int Main(Flags& flags) {
  const absl::Status status = Measure(flags);
  return status.ok() ? kExitDone : Refuse(status);
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  lockstep::benchmark::Flags flags;
  lockstep::FlagParser parser(
      "straggler_benchmark",
      "Times global steps of a cluster of real processes whose workers sleep "
      "in place of computing, where one of them is slow or missing. Needs 4 "
      "gradients for a step, or shares eight. Prints one line of JSON per "
      "case, and on standard "
      "error a table next to what TensorFlow needs (without initial tokens, "
      "and with its default).");
  lockstep::benchmark::AddFlags(parser.app(), flags);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::benchmark::Main(flags);
}
