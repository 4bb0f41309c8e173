#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cluster/tf_config_loader.h"
#include "common/flags/flag_parser.h"
#include "common/process/process.h"
#include "common/program/main_support.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/overlap_schedule.h"
#include "tests/benchmark/overlap_worker.h"
#include "tests/testing/process_cluster.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::ProcessCluster;
using ::lockstep::testing::ProgramPath;

struct Flags {
  OverlapOptions run;
  int workers = 2;
  int servers = 1;
  int64_t megabytes = 100;
  std::string shared_memory = "off";
  std::string report;  // output file of a worker process
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--workers", flags.workers, "Workers; all of them count.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--servers", flags.servers, "Parameter servers.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--megabytes", flags.megabytes, "Size of the model, in MiB.")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  app.add_option("--layers", flags.run.layers, "Layers of equal size.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--forward_share", flags.run.forward_share,
                 "What the forward pass takes of the compute time.")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--balances", flags.run.balances,
                 "Compute time over transfer time, comma-separated.")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--block", flags.run.block, "Steps of one kind in a row.")
      ->check(CLI::Range(3, 100000))
      ->capture_default_str();
  app.add_option("--rounds", flags.run.rounds, "How often each is measured.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--shared_memory", flags.shared_memory,
                 "Whether workers share memory with servers: auto or off.")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
  app.add_flag("--spin", flags.run.spin,
               "Compute keeps a core busy instead of sleeping.");
  // Arguments for the workers; --help does not show them.
  app.add_option("--report", flags.report)->group("");
}

std::vector<std::string> WorkerArgs(const Flags& flags,
                                    const std::string& report) {
  const OverlapOptions& run = flags.run;
  std::vector<std::string> args = {
      "--megabytes",     absl::StrCat(flags.megabytes),
      "--layers",        absl::StrCat(run.layers),
      "--forward_share", absl::StrCat(run.forward_share),
      "--balances",      absl::StrJoin(run.balances, ","),
      "--block",         absl::StrCat(run.block),
      "--rounds",        absl::StrCat(run.rounds),
      "--report",        report};
  if (run.spin) args.push_back("--spin");
  return args;
}

std::string JobText(const OverlapOptions& run) {
  return absl::StrCat(
      "name: \"overlap_benchmark\"\nmode: STRICT\n",
      // The last step is not measured, because its end has no time stamp.
      "train_steps: ", TotalSteps(run) + 1, "\nbatch_size: 1\n",
      "data { train_images: \"none\" train_labels: \"none\" }\n",
      "optimizer { kind: MOMENTUM momentum: ", kMomentum, " }\n",
      "learning_rate: ", kLearningRate, "\n",
      "heartbeat_interval { seconds: 1 }\nlease { seconds: 60 }\n");
}

absl::Status RunCluster(const Flags& flags, const std::string& directory) {
  const std::string job_file = directory + "/job.textproto";
  const std::string report = directory + "/report";
  if (!(std::ofstream(job_file) << JobText(flags.run) << std::flush)) {
    return absl::UnavailableError(absl::StrCat("cannot write ", job_file));
  }
  ProcessCluster::Options options;
  options.log_directory = directory;
  options.jobs = {
      {"chief", {1, {ProgramPath("chief"), {"--job", job_file}}}},
      {"ps",
       {flags.servers,
        {ProgramPath("ps_server"),
         {"--state_dir", directory + "/state", "--shared_memory",
          flags.shared_memory}}}},
      {"worker",
       {flags.workers,
        {ProgramPath("overlap_benchmark"), WorkerArgs(flags, report)}}}};
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ProcessCluster> cluster,
                            ProcessCluster::Create(std::move(options)));
  LOCKSTEP_RETURN_IF_ERROR(cluster->StartAll());
  LOCKSTEP_RETURN_IF_ERROR(cluster->WaitAllSucceed(absl::Minutes(10)));
  std::ostringstream lines;
  lines << std::ifstream(report).rdbuf();
  std::cout << lines.str() << std::flush;
  std::cerr << OverlapTable(lines.str()) << std::flush;
  return absl::OkStatus();
}

// Uses a new directory in memory, which is removed after the run.
absl::Status Measure(const Flags& flags) {
  std::string directory = "/dev/shm/lockstep-benchmark-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    return absl::UnavailableError("no directory can be made in /dev/shm");
  }
  const absl::Status status = RunCluster(flags, directory);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return status;
}

absl::Status RunWorker(const Flags& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, LoadTfConfig(""));
  LOCKSTEP_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Make(config));
  LOCKSTEP_RETURN_IF_ERROR(InitLog("worker", "info"));
  return RunOverlapWorker(cluster, flags.run, flags.report);
}

int Main(Flags& flags) {
  flags.run.bytes = flags.megabytes << 20;
  const absl::Status status =
      flags.report.empty() ? Measure(flags) : RunWorker(flags);
  return status.ok() ? kExitDone : Refuse(status);
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  lockstep::TuneProcess();
  lockstep::benchmark::Flags flags;
  lockstep::FlagParser parser(
      "overlap_benchmark",
      "Times steps of a cluster of real processes whose workers take their "
      "time layer by layer, and prints how a step compares with the slower of "
      "compute and transfer alone. Prints one line of JSON per balance, and on "
      "standard error a table with the goal.");
  lockstep::benchmark::AddFlags(parser.app(), flags);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::benchmark::Main(flags);
}
