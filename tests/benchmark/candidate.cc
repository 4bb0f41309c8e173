#include "tests/benchmark/candidate.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/testing/process_cluster.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::ProcessCluster;
using ::lockstep::testing::ProgramPath;

constexpr absl::Duration kLongestRun = absl::Minutes(10);

// ScratchDirectory is a fresh private directory that goes with the object.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent)
      : path_(parent + "/lockstep-benchmark-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  // Empty if none could be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string JobText(const Candidate& candidate, const RunSettings& settings) {
  const bool packed = candidate.system == "lockstep_bfloat16";
  return absl::StrCat(
      "name: \"step_benchmark\"\n", "mode: STRICT\n",
      // The first step has no measured beginning.
      "train_steps: ", settings.warmup + settings.steps + 1, "\n",
      "batch_size: 1\n",
      "data { train_images: \"none\" train_labels: \"none\" }\n",
      "optimizer { kind: MOMENTUM momentum: ", kMomentum, " }\n",
      "learning_rate: ", kLearningRate, "\n",
      "gradient_wire_type: ", packed ? "BFLOAT16" : "VARIABLE", "\n",
      // A loaded machine is no dead process.
      "heartbeat_interval { seconds: 1 }\nlease { seconds: 60 }\n");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (file << text << std::flush) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

ProcessCluster::Program OwnProgram(const std::string& role,
                                   const std::string& model,
                                   const RunSettings& settings,
                                   const std::string& samples) {
  return {
      ProgramPath("step_benchmark"),
      {"--role", role, "--model", model, "--bytes",
       absl::StrCat(settings.bytes), "--warmup", absl::StrCat(settings.warmup),
       "--steps", absl::StrCat(settings.steps), "--samples", samples}};
}

std::map<std::string, ProcessCluster::Job> TcpJobs(const Candidate& candidate,
                                                   const RunSettings& settings,
                                                   const std::string& samples) {
  return {
      {"ps", {1, OwnProgram("tcp_server", candidate.model, settings, samples)}},
      {"worker",
       {settings.workers,
        OwnProgram("tcp_worker", candidate.model, settings, samples)}}};
}

std::map<std::string, ProcessCluster::Job> LockstepJobs(
    const Candidate& candidate, const RunSettings& settings,
    const std::string& samples, const std::string& job_file,
    const std::string& state_dir) {
  return {{"chief", {1, {ProgramPath("chief"), {"--job", job_file}}}},
          {"ps",
           {settings.servers,
            {ProgramPath("ps_server"), {"--state_dir", state_dir}}}},
          {"worker",
           {settings.workers,
            OwnProgram("worker", candidate.model, settings, samples)}}};
}

}  // namespace

absl::StatusOr<std::vector<StepSample>> RunOnce(const Candidate& candidate,
                                                const RunSettings& settings) {
  const ScratchDirectory scratch(
      std::filesystem::temp_directory_path().string());
  const ScratchDirectory state("/dev/shm");
  if (scratch.path().empty() || state.path().empty()) {
    return absl::UnavailableError(
        "no directory can be made in TMPDIR or in /dev/shm");
  }
  const std::string samples = scratch.path() + "/samples";
  const std::string job_file = scratch.path() + "/job.textproto";
  LOCKSTEP_RETURN_IF_ERROR(WriteFile(job_file, JobText(candidate, settings)));
  ProcessCluster::Options options;
  options.log_directory = scratch.path();
  options.jobs =
      candidate.system == "tcp"
          ? TcpJobs(candidate, settings, samples)
          : LockstepJobs(candidate, settings, samples, job_file, state.path());
  if (settings.huge_page_heap) {
    options.environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1";
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ProcessCluster> cluster,
                            ProcessCluster::Create(std::move(options)));
  LOCKSTEP_RETURN_IF_ERROR(cluster->StartAll());
  LOCKSTEP_RETURN_IF_ERROR(cluster->WaitAllSucceed(kLongestRun));
  return ReadSamples(samples);
}

}  // namespace lockstep::benchmark
