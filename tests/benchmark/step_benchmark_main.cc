#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "common/cluster/tf_config_loader.h"
#include "common/log.h"
#include "common/main_support.h"
#include "common/process.h"
#include "common/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/candidate.h"
#include "tests/benchmark/lockstep_worker.h"
#include "tests/benchmark/role_options.h"
#include "tests/benchmark/step_report.h"
#include "tests/benchmark/tcp_connection.h"
#include "tests/benchmark/tcp_server.h"
#include "tests/benchmark/tcp_worker.h"

namespace lockstep::benchmark {
namespace {

struct Flags {
  RunSettings settings;
  int64_t megabytes = 100;
  int rounds = 5;
  int64_t scalar_steps = 300;
  std::vector<std::string> models = {"dense", "resnet50", "scalar"};
  bool bfloat16 = false;
  RoleOptions role;
};

void AddRunFlags(CLI::App& app, Flags& flags) {
  RunSettings& settings = flags.settings;
  app.add_option("--workers", settings.workers,
                 "Workers; every one of them counts in each step.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--servers", settings.servers,
                 "Parameter servers of Lockstep; the TCP program has one.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--megabytes", flags.megabytes,
                 "Size of the models dense and resnet50, in MiB.")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds,
                 "How often each candidate is measured, in turn.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--scalar_steps", flags.scalar_steps,
                 "Steps of a round that are measured of the model scalar.")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--models", flags.models,
                 "Models to measure, comma-separated: dense, resnet50, "
                 "scalar.")
      ->delimiter(',')
      ->check(CLI::IsMember({"dense", "resnet50", "scalar"}))
      ->capture_default_str();
  app.add_flag("--bfloat16", flags.bfloat16,
               "Measure Lockstep once more, with gradients sent as bfloat16.");
  app.add_flag("--huge_page_heap", settings.huge_page_heap,
               "Let glibc ask for huge pages, in all processes.");
}

// What the processes of a candidate are told; --help does not show it.
void AddRoleFlags(CLI::App& app, Flags& flags) {
  app.add_option("--role", flags.role.role)->group("");
  app.add_option("--model", flags.role.model)->group("");
  app.add_option("--bytes", flags.role.bytes)->group("");
  app.add_option("--samples", flags.role.samples)->group("");
}

// Of the run, and of each process.
void AddCommonStepFlags(CLI::App& app, Flags& flags) {
  app.add_option("--warmup", flags.settings.warmup,
                 "Steps before the measured ones, in each round.")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--steps", flags.settings.steps,
                 "Steps of a round that are measured.")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

absl::Status RunRole(const RoleOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, LoadTfConfig(""));
  LOCKSTEP_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Make(config));
  LOCKSTEP_RETURN_IF_ERROR(InitLog(options.role, "info"));
  if (options.role == "worker") return RunLockstepWorker(cluster, options);
  if (options.role == "tcp_server") return RunTcpServer(cluster, options);
  if (options.role == "tcp_worker") return RunTcpWorker(cluster, options);
  return absl::InvalidArgumentError(absl::StrCat(
      "--role is ", options.role, "; write worker, tcp_server or tcp_worker"));
}

RunSettings SettingsFor(const Candidate& candidate, const Flags& flags) {
  RunSettings settings = flags.settings;
  settings.bytes = flags.megabytes << 20;
  if (candidate.model == "scalar") settings.steps = flags.scalar_steps;
  return settings;
}

// The TCP program knows no tensors: dense stands for every model of its size.
std::vector<Measured> MakeCandidates(const Flags& flags) {
  std::vector<Measured> all;
  const auto add = [&](const std::string& system, const std::string& model) {
    auto variables = MakeBenchmarkVariables(model, flags.megabytes << 20);
    if (!variables.ok()) return;
    all.push_back({{system, model},
                   TotalBytes(*variables),
                   static_cast<int64_t>(variables->size()),
                   {}});
  };
  const auto wanted = [&](const std::string& model) {
    return std::count(flags.models.begin(), flags.models.end(), model) > 0;
  };
  if (wanted("dense") || wanted("resnet50")) add("tcp", "dense");
  for (const std::string model : {"dense", "resnet50"}) {
    if (wanted(model)) add("lockstep", model);
    if (wanted(model) && flags.bfloat16) add("lockstep_bfloat16", model);
  }
  if (wanted("scalar")) add("tcp", "scalar");
  if (wanted("scalar")) add("lockstep", "scalar");
  return all;
}

const Measured* FindTcp(const std::vector<Measured>& all, int64_t bytes) {
  for (const Measured& measured : all) {
    if (measured.candidate.system == "tcp" && measured.bytes == bytes) {
      return &measured;
    }
  }
  return nullptr;
}

absl::Status Measure(const Flags& flags) {
  std::vector<Measured> all = MakeCandidates(flags);
  for (int round = 0; round < flags.rounds; ++round) {
    for (Measured& measured : all) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          std::vector<StepSample> samples,
          RunOnce(measured.candidate, SettingsFor(measured.candidate, flags)));
      std::cerr << "round " << round + 1 << "/" << flags.rounds << " "
                << measured.candidate.system << " " << measured.candidate.model
                << " " << MedianMs(samples, &StepSample::total) << " ms\n";
      measured.rounds.push_back(std::move(samples));
    }
  }
  const Circumstances circumstances{LoopbackCongestionControl(),
                                    SystemCongestionControl()};
  for (const Measured& measured : all) {
    std::cout << ReportLine(measured, FindTcp(all, measured.bytes),
                            SettingsFor(measured.candidate, flags),
                            circumstances)
              << std::endl;
  }
  return absl::OkStatus();
}

int Main(Flags& flags) {
  if (flags.role.role.empty()) {
    const absl::Status status = Measure(flags);
    return status.ok() ? kExitDone : Refuse(status);
  }
  flags.role.warmup = flags.settings.warmup;
  flags.role.steps = flags.settings.steps;
  const absl::Status status = RunRole(flags.role);
  return status.ok() ? kExitDone : Refuse(status);
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  lockstep::TuneAllocator();
  lockstep::benchmark::Flags flags;
  flags.settings.warmup = 5;
  flags.settings.steps = 15;
  lockstep::FlagParser parser(
      "step_benchmark",
      "Times global steps of a cluster of real processes that compute "
      "nothing, next to a plain TCP program that moves the same bytes. "
      "Prints one line of JSON per candidate.");
  lockstep::benchmark::AddRunFlags(parser.app(), flags);
  lockstep::benchmark::AddCommonStepFlags(parser.app(), flags);
  lockstep::benchmark::AddRoleFlags(parser.app(), flags);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::benchmark::Main(flags);
}
