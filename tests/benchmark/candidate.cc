#include "tests/benchmark/candidate.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/readers.h"
#include "tests/benchmark/role_options.h"
#include "tests/benchmark/tuned_gradients.h"
#include "tests/testing/process_cluster.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::ProcessCluster;
using ::lockstep::testing::ProgramPath;

constexpr absl::Duration kLongestRun = absl::Minutes(10);

// ScratchDirectory is a new private directory; the destructor removes it.
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

  // Empty if the directory could not be created.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int Aggregate(const Candidate& candidate) {
  return candidate.aggregate > 0 ? candidate.aggregate : candidate.workers;
}

bool HasBackups(const Candidate& candidate) {
  return candidate.numbers == 0 &&
         (candidate.tuned || Aggregate(candidate) < candidate.workers);
}

// Steps do not need every worker: all compute the same gradients.
bool SomeAreIdle(const Candidate& candidate) {
  return HasBackups(candidate) || candidate.numbers > 0;
}

// The fields that say how a step is divided among workers.
std::string DivisionText(const Candidate& candidate) {
  if (candidate.numbers > 0) {
    return absl::StrCat(
        "work: SHARED\nmicro_batches_per_step: ", candidate.numbers,
        "\nbatch_size: ", candidate.numbers, "\n",
        candidate.push > 0
            ? absl::StrCat("micro_batches_per_push: ", candidate.push, "\n")
            : "");
  }
  return absl::StrCat(
      "replicas_to_aggregate: ",
      candidate.tuned ? "AUTO" : absl::StrCat(Aggregate(candidate)),
      "\nbatch_size: 1\n");
}

std::string DurationText(int64_t milliseconds) {
  return absl::StrCat("{ seconds: ", milliseconds / 1000,
                      " nanos: ", milliseconds % 1000 * 1000000, " }");
}

// `summaries`: their directory; empty: none.
std::string JobText(const Candidate& candidate, const std::string& summaries) {
  return absl::StrCat(
      "name: \"benchmark\"\n",
      "mode: ", candidate.compatible ? "COMPATIBLE" : "STRICT", "\n",
      DivisionText(candidate), "total_num_replicas: ", candidate.workers, "\n",
      candidate.initial_tokens < 0
          ? ""
          : absl::StrCat("initial_tokens: ", candidate.initial_tokens, "\n"),
      "train_steps: ", candidate.warmup + candidate.steps + kMoreSteps, "\n",
      "data { train_images: \"none\" train_labels: \"none\" }\n",
      "optimizer { kind: MOMENTUM momentum: ", kMomentum, " }\n",
      "learning_rate: ", kLearningRate, "\n", "heartbeat_interval ",
      DurationText(candidate.heartbeat_ms), "\nlease ",
      DurationText(candidate.lease_ms), "\n",
      summaries.empty()
          ? ""
          : absl::StrCat("summary { directory: \"", summaries, "\" }\n"),
      candidate.job_text, "\n");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (file << text << std::flush) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

ProcessCluster::Program OwnProgram(const std::string& role,
                                   const Candidate& candidate,
                                   const std::string& record) {
  return {ProgramPath("step_benchmark"),
          {"--role", role, "--model", candidate.model, "--bytes",
           absl::StrCat(candidate.bytes), "--warmup",
           absl::StrCat(candidate.warmup), "--steps",
           absl::StrCat(candidate.steps), "--record", record}};
}

// Directories for the files of a candidate's processes.
struct Places {
  std::string record;
  std::string job_file;
  std::string state_dir;
  std::string tls_dir;
};

// The plain programs: "tcp", "naive", "stream" or "chunk".
std::map<std::string, ProcessCluster::Job> PlainJobs(const std::string& system,
                                                     const Candidate& candidate,
                                                     const Places& places) {
  ProcessCluster::Program server =
      OwnProgram(system + "_server", candidate, places.record);
  ProcessCluster::Program worker =
      OwnProgram(system + "_worker", candidate, places.record);
  if (candidate.system == "tcp_two_phase") server.args.push_back("--two_phase");
  if (candidate.system == "tcp_openssl") {
    server.args.push_back("--encrypt");
    worker.args.push_back("--encrypt");
  }
  if (candidate.system == "naive") {
    server.args.push_back("--default_allocator");
    worker.args.push_back("--default_allocator");
  }
  return {{"ps", {1, std::move(server)}},
          {"worker", {candidate.workers, std::move(worker)}}};
}

// Workers that need no server.
std::map<std::string, ProcessCluster::Job> GlooJobs(const Candidate& candidate,
                                                    const Places& places) {
  return {{"worker",
           {candidate.workers,
            OwnProgram("gloo_worker", candidate, places.record)}}};
}

std::map<std::string, ProcessCluster::Job> LockstepJobs(
    const Candidate& candidate, const Places& places) {
  ProcessCluster::Program worker =
      OwnProgram("worker", candidate, places.record);
  if (SomeAreIdle(candidate)) worker.args.push_back("--backups");
  if (candidate.shares_with_mirror_alone) {
    worker.args.push_back("--mirror_alone");
  }
  for (const std::string& arg :
       {std::string("--compute_ms"), absl::StrCat(candidate.compute_ms),
        std::string("--slow_worker"),
        absl::StrCat(candidate.workers - candidate.slow_workers),
        std::string("--slow_factor"), absl::StrCat(candidate.slow_factor),
        std::string("--sigma"), absl::StrCat(candidate.sigma),
        std::string("--hang_worker"), absl::StrCat(candidate.workers - 1),
        std::string("--hang_ms"), absl::StrCat(candidate.hang_ms),
        std::string("--hang_every_ms"),
        absl::StrCat(candidate.hang_every_ms)}) {
    worker.args.push_back(arg);
  }
  std::map<std::string, ProcessCluster::Job> jobs = {
      {"chief", {1, {ProgramPath("chief"), {"--job", places.job_file}}}},
      {"ps",
       {candidate.servers,
        {ProgramPath("ps_server"),
         {"--state_dir", candidate.own_memory ? "" : places.state_dir,
          "--shared_memory", candidate.shared_memory ? "auto" : "off",
          "--pollers", absl::StrCat(candidate.pollers)}}}},
      {"worker", {candidate.workers, std::move(worker)}}};
  if (candidate.shares_with_mirror_alone) {
    jobs.at("ps").program.args.push_back("--means_on_wire");
  }
  if (candidate.observed) {
    for (auto& [name, job] : jobs) {
      job.program.args.push_back("--status_address=127.0.0.1:0");
    }
  }
  if (!candidate.tls) return jobs;
  for (auto& [name, job] : jobs) {
    job.program.args.push_back("--tls_dir=" + places.tls_dir +
                               "/{role}-{index}");
  }
  return jobs;
}

// Gives each task a certificate.
void WriteCertificates(const Candidate& candidate, const Places& places) {
  const testing::TestAuthority authority;
  const auto issue = [&](const char* role, int tasks) {
    for (int i = 0; i < tasks; ++i) {
      testing::WriteTlsFiles(
          absl::StrCat(places.tls_dir, "/", role, "-", i),
          authority.Files(absl::StrCat("lockstep://benchmark/", role, "/", i)));
    }
  };
  issue("chief", 1);
  issue("ps", candidate.servers);
  issue("worker", candidate.workers);
}

std::map<std::string, ProcessCluster::Job> Jobs(const Candidate& candidate,
                                                const Places& places) {
  if (candidate.system == "lockstep") return LockstepJobs(candidate, places);
  if (candidate.system == "gloo") return GlooJobs(candidate, places);
  for (const char* system : {"tcp", "stream", "chunk"}) {
    if (absl::StartsWith(candidate.system, system)) {
      return PlainJobs(system, candidate, places);
    }
  }
  return PlainJobs("naive", candidate, places);
}

absl::Status StartTasks(const Candidate& candidate, ProcessCluster& cluster) {
  if (!candidate.last_absent) return cluster.StartAll();
  LOCKSTEP_RETURN_IF_ERROR(cluster.Start("chief", 0));
  for (int i = 0; i < candidate.servers; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(cluster.Start("ps", i));
  }
  for (int i = 0; i + 1 < candidate.workers; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(cluster.Start("worker", i));
  }
  return absl::OkStatus();
}

// The record of the worker that took part in the most steps: one that is not
// needed may connect only at the end.
absl::StatusOr<RunRecord> LongestRecord(const Candidate& candidate,
                                        const Places& places) {
  absl::StatusOr<RunRecord> longest =
      absl::UnavailableError("no worker recorded a step");
  for (int worker = 0; worker < candidate.workers; ++worker) {
    absl::StatusOr<RunRecord> record =
        ReadRecord(absl::StrCat(places.record, ".", worker));
    if (!record.ok()) continue;
    if (!longest.ok() ||
        CountSteps(record->samples) > CountSteps(longest->samples)) {
      longest = std::move(record);
    }
  }
  return longest;
}

absl::Status KillAgainAndAgain(const Candidate& candidate,
                               ProcessCluster& cluster) {
  LOCKSTEP_ASSIGN_OR_RETURN(testing::ChildProcess * chief,
                            cluster.Process("chief", 0));
  const int last = candidate.workers - 1;
  const absl::Duration pause = absl::Milliseconds(candidate.kill_every_ms);
  absl::Time next = absl::Now() + pause;
  // The chief ends with the job.
  while (!chief->Poll().has_value()) {
    absl::SleepFor(absl::Milliseconds(20));
    if (absl::Now() < next) continue;
    next = absl::Now() + pause;
    // A worker whose job is done has ended already.
    if (!cluster.Kill("worker", last).ok()) break;
    LOCKSTEP_RETURN_IF_ERROR(cluster.Start("worker", last));
  }
  return absl::OkStatus();
}

std::string Size(const Candidate& candidate) {
  if (candidate.model == "scalar") return "";
  return absl::StrFormat(
      " %.4g MiB", static_cast<double>(candidate.bytes) / (int64_t{1} << 20));
}

}  // namespace

std::string Describe(const Candidate& candidate) {
  std::string text = absl::StrCat(
      candidate.system, " ", candidate.model, Size(candidate), ", ",
      candidate.workers, candidate.workers == 1 ? " worker" : " workers");
  if (candidate.tuned) {
    absl::StrAppend(&text, " for AUTO");
  } else if (HasBackups(candidate)) {
    absl::StrAppend(&text, " for ", Aggregate(candidate));
  }
  if (candidate.numbers > 0) {
    absl::StrAppend(&text, " for ", candidate.numbers, " numbers");
  }
  if (candidate.servers > 1) {
    absl::StrAppend(&text, ", ", candidate.servers, " servers");
  }
  if (candidate.shared_memory) absl::StrAppend(&text, ", shared memory");
  if (candidate.shares_with_mirror_alone) absl::StrAppend(&text, " (mirror)");
  if (candidate.tls) absl::StrAppend(&text, ", TLS");
  if (candidate.own_memory) absl::StrAppend(&text, ", state in own memory");
  if (candidate.lease_ms < 60000) {
    absl::StrAppend(&text, ", lease ", candidate.lease_ms, " ms");
  }
  if (candidate.compatible) absl::StrAppend(&text, ", compatible");
  if (candidate.observed) absl::StrAppend(&text, ", observed");
  if (candidate.pollers > 0) {
    absl::StrAppend(&text, ", pollers ", candidate.pollers);
  }
  if (!candidate.job_text.empty()) {
    absl::StrAppend(&text, ", ", candidate.job_text);
  }
  return text;
}

absl::StatusOr<RunRecord> RunOnce(const Candidate& candidate) {
  const ScratchDirectory scratch(
      std::filesystem::temp_directory_path().string());
  const ScratchDirectory state("/dev/shm");
  if (scratch.path().empty() || state.path().empty()) {
    return absl::UnavailableError(
        "no directory can be made in TMPDIR or in /dev/shm");
  }
  const Places places{scratch.path() + "/record",
                      scratch.path() + "/job.textproto", state.path(),
                      scratch.path() + "/tls"};
  if (candidate.tls) WriteCertificates(candidate, places);
  LOCKSTEP_RETURN_IF_ERROR(WriteFile(
      places.job_file,
      JobText(candidate,
              candidate.observed ? scratch.path() + "/summaries" : "")));
  ProcessCluster::Options options;
  options.log_directory = scratch.path();
  options.jobs = Jobs(candidate, places);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ProcessCluster> cluster,
                            ProcessCluster::Create(std::move(options)));
  LOCKSTEP_RETURN_IF_ERROR(StartTasks(candidate, *cluster));
  {
    std::optional<Readers> readers;
    if (candidate.observed) readers.emplace(candidate, *cluster);
    if (candidate.kill_every_ms > 0) {
      LOCKSTEP_RETURN_IF_ERROR(KillAgainAndAgain(candidate, *cluster));
    }
    LOCKSTEP_RETURN_IF_ERROR(cluster->WaitAllSucceed(kLongestRun));
    if (readers.has_value() && readers->answers() == 0) {
      return absl::UnavailableError(
          "no page was read while the job ran, so it was not observed; let it "
          "make more steps");
    }
  }
  absl::StatusOr<RunRecord> record = SomeAreIdle(candidate)
                                         ? LongestRecord(candidate, places)
                                         : ReadRecord(places.record);
  if (record.ok() && candidate.tuned) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string log,
                              cluster->ReadLog("chief", 0));
    record->gradients =
        MeanGradients(ChangesInLog(log), candidate.workers, candidate.warmup,
                      candidate.warmup + candidate.steps);
  }
  return record;
}

}  // namespace lockstep::benchmark
