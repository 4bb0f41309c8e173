#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cluster/tf_config_loader.h"
#include "common/flags/flag_parser.h"
#include "common/process/process.h"
#include "common/program/main_support.h"
#include "tests/benchmark/chunk_server.h"
#include "tests/benchmark/chunk_worker.h"
#include "tests/benchmark/comparison.h"
#include "tests/benchmark/comparison_table.h"
#include "tests/benchmark/gloo_worker.h"
#include "tests/benchmark/lockstep_worker.h"
#include "tests/benchmark/measured.h"
#include "tests/benchmark/naive_server.h"
#include "tests/benchmark/naive_worker.h"
#include "tests/benchmark/role_options.h"
#include "tests/benchmark/step_report.h"
#include "tests/benchmark/stream_server.h"
#include "tests/benchmark/tcp_connection.h"
#include "tests/benchmark/tcp_server.h"
#include "tests/benchmark/tcp_worker.h"

namespace lockstep::benchmark {
namespace {

struct Flags {
  ComparisonOptions options;
  double megabytes = 100;
  int rounds = 5;
  std::vector<std::string> compare;
  RoleOptions role;
};

std::vector<std::string> DefaultComparisons() {
  std::vector<std::string> names;
  for (const Comparison& comparison : AllComparisons()) {
    if (comparison.by_default) names.push_back(comparison.name);
  }
  return names;
}

std::string CompareHelp() {
  std::string text =
      absl::StrCat("What to measure, comma-separated; by default ",
                   absl::StrJoin(DefaultComparisons(), ", "), ".");
  for (const Comparison& comparison : AllComparisons()) {
    absl::StrAppend(&text, " ", comparison.name, ": ", comparison.summary, ".");
  }
  return absl::StrCat(text, " growth: both growth_workers and growth_sizes.");
}

void AddRunFlags(CLI::App& app, Flags& flags) {
  Candidate& base = flags.options.base;
  app.add_option("--compare", flags.compare, CompareHelp())->delimiter(',');
  app.add_option("--workers", base.workers,
                 "Workers, where a comparison does not say how many; every one "
                 "of them counts in each step.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--servers", base.servers,
                 "Parameter servers of Lockstep, likewise; the plain programs "
                 "have one.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--megabytes", flags.megabytes,
                 "Size of the models dense and resnet50, in MiB.")
      ->check(CLI::Range(0.01, 16384.0))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds,
                 "How often each candidate is measured, in turn.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--scalar_steps", flags.options.scalar_steps,
                 "Steps of a round that are measured of the model scalar.")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--warmup", base.warmup,
                 "Steps before the measured ones, in each round.")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--steps", base.steps, "Steps of a round that are measured.")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

// Arguments for the processes of a candidate; --help does not show them.
void AddRoleFlags(CLI::App& app, RoleOptions& role) {
  app.add_option("--role", role.role)->group("");
  app.add_option("--model", role.model)->group("");
  app.add_option("--bytes", role.bytes)->group("");
  app.add_option("--record", role.record)->group("");
  app.add_flag("--two_phase", role.two_phase)->group("");
  app.add_flag("--encrypt", role.encrypt)->group("");
  app.add_option("--tls_dir", role.tls_dir)->group("");
  app.add_option("--status_address", role.status_address)->group("");
  app.add_flag("--default_allocator", role.default_allocator)->group("");
  app.add_flag("--backups", role.backups)->group("");
  app.add_flag("--mirror_alone", role.mirror_alone)->group("");
  app.add_option("--compute_ms", role.compute_ms)->group("");
  app.add_option("--slow_worker", role.slow_worker)->group("");
  app.add_option("--slow_factor", role.slow_factor)->group("");
  app.add_option("--sigma", role.sigma)->group("");
  app.add_option("--hang_worker", role.hang_worker)->group("");
  app.add_option("--hang_ms", role.hang_ms)->group("");
  app.add_option("--hang_every_ms", role.hang_every_ms)->group("");
}

// As the built-in worker, with its certificate and its status.
absl::Status RunWholeWorker(const RoleOptions& options) {
  CommonFlags flags;
  flags.tls_dir = options.tls_dir;
  flags.status_address = options.status_address;
  LOCKSTEP_ASSIGN_OR_RETURN(
      Cluster cluster,
      StartProcess(flags, {TaskType::kWorker}, "step_benchmark"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<StatusServer> status,
      ServeStatus(flags, cluster, [] { return MetricFamilies(); }));
  return RunLockstepWorker(cluster, options);
}

absl::Status RunRole(const RoleOptions& options) {
  if (!options.tls_dir.empty() || !options.status_address.empty()) {
    return RunWholeWorker(options);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, LoadTfConfig(""));
  LOCKSTEP_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Make(config));
  LOCKSTEP_RETURN_IF_ERROR(InitLog(options.role, "info"));
  if (options.role == "worker") return RunLockstepWorker(cluster, options);
  if (options.role == "tcp_server") return RunTcpServer(cluster, options);
  if (options.role == "tcp_worker") return RunTcpWorker(cluster, options);
  if (options.role == "naive_server") return RunNaiveServer(cluster, options);
  if (options.role == "stream_server") return RunStreamServer(cluster, options);
  if (options.role == "gloo_worker") return RunGlooWorker(cluster, options);
  if (options.role == "chunk_server") return RunChunkServer(cluster, options);
  if (options.role == "chunk_worker") return RunChunkWorker(cluster, options);
  if (options.role == "naive_worker" || options.role == "stream_worker") {
    return RunNaiveWorker(cluster, options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--role is ", options.role,
                   "; write worker, or tcp_, naive_, stream_ or chunk_ and "
                   "server or worker"));
}

bool NeedsGloo(const Row& row) {
  return row.denominator.has_value() && row.denominator->system == "gloo";
}

// Returns the rows of all selected comparisons, in the order of --help.
absl::StatusOr<std::vector<Row>> WantedRows(const Flags& flags) {
  std::vector<Row> rows;
  std::vector<std::string> names;
  for (const std::string& name : flags.compare) {
    if (name == "growth") {
      names.insert(names.end(), {"growth_workers", "growth_sizes"});
    } else {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Row> more,
                              MakeRows(name, flags.options));
    if (more.empty()) {
      std::cerr << name << ": left out, this build's job file has no such "
                << "field\n";
    }
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const size_t left_out = HasGloo() ? 0 : std::erase_if(rows, NeedsGloo);
  if (left_out > 0) {
    std::cerr << left_out << " rows are left out, this build has no gloo: "
              << "install libgloo-dev and configure anew\n";
  }
  return rows;
}

// The candidates of the rows, each once.
absl::StatusOr<std::vector<Measured>> Candidates(const std::vector<Row>& rows) {
  std::vector<Measured> all;
  const auto add = [&](const Candidate& candidate) -> absl::Status {
    if (Find(all, candidate) != nullptr) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(Measured measured, NothingMeasured(candidate));
    all.push_back(std::move(measured));
    return absl::OkStatus();
  };
  for (const Row& row : rows) {
    if (row.denominator.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(add(*row.denominator));
    }
    LOCKSTEP_RETURN_IF_ERROR(add(row.numerator));
  }
  return all;
}

const Measured* FindTcp(const std::vector<Measured>& all,
                        const Measured& like) {
  for (const Measured& measured : all) {
    if (measured.candidate.system == "tcp" && measured.bytes == like.bytes &&
        measured.candidate.workers == like.candidate.workers) {
      return &measured;
    }
  }
  return nullptr;
}

// The comparisons that a candidate takes part in.
std::vector<std::string> ComparisonsOf(const Candidate& candidate,
                                       const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    const bool in = row.numerator == candidate || row.denominator == candidate;
    if (in && (names.empty() || names.back() != row.comparison)) {
      names.push_back(row.comparison);
    }
  }
  return names;
}

absl::Status MeasureRounds(int rounds, std::vector<Measured>& all) {
  for (int round = 0; round < rounds; ++round) {
    for (Measured& measured : all) {
      LOCKSTEP_ASSIGN_OR_RETURN(RunRecord record, RunOnce(measured.candidate));
      std::cerr << "round " << round + 1 << "/" << rounds << ": "
                << Describe(measured.candidate) << ": "
                << MedianMs(record.samples, &StepSample::total) << " ms"
                << std::endl;
      measured.rounds.push_back(std::move(record));
    }
  }
  return absl::OkStatus();
}

absl::Status Measure(const Flags& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Row> rows, WantedRows(flags));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Measured> all, Candidates(rows));
  LOCKSTEP_RETURN_IF_ERROR(MeasureRounds(flags.rounds, all));
  const Circumstances circumstances{LoopbackCongestionControl(),
                                    SystemCongestionControl()};
  for (const Measured& measured : all) {
    std::cout << ReportLine(measured, FindTcp(all, measured),
                            ComparisonsOf(measured.candidate, rows),
                            circumstances)
              << std::endl;
  }
  std::cerr << "\nloopback: " << circumstances.congestion_control << "\n\n"
            << ComparisonTable(rows, all);
  return absl::OkStatus();
}

int Main(Flags& flags) {
  Candidate& base = flags.options.base;
  absl::Status status;
  if (flags.role.role.empty()) {
    base.bytes = static_cast<int64_t>(flags.megabytes * (1 << 20)) / 4 * 4;
    if (flags.compare.empty()) flags.compare = DefaultComparisons();
    TuneProcess();
    status = Measure(flags);
  } else {
    flags.role.warmup = base.warmup;
    flags.role.steps = base.steps;
    if (!flags.role.default_allocator) TuneProcess();
    status = RunRole(flags.role);
  }
  return status.ok() ? kExitDone : Refuse(status);
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  lockstep::benchmark::Flags flags;
  flags.options.base.warmup = 5;
  flags.options.base.steps = 15;
  flags.options.scalar_steps = 2000;
  lockstep::FlagParser parser(
      "step_benchmark",
      "Times global steps of a cluster of real processes that compute "
      "nothing, next to plain programs that move the same bytes. Prints one "
      "line of JSON per candidate, and on standard error a table of ratios.");
  lockstep::benchmark::AddRunFlags(parser.app(), flags);
  lockstep::benchmark::AddRoleFlags(parser.app(), flags.role);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::benchmark::Main(flags);
}
