#include "tests/e2e/training_job.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/step_directory.h"
#include "common/rpc/security/transport/transport_security.h"
#include "gtest/gtest.h"
#include "tests/e2e/picture_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
constexpr absl::Duration kCallTimeout = absl::Seconds(1);

// Small parts, so that every server has many. Steps of some milliseconds, so
// that there is time to disturb the job.
constexpr char kJob[] = R"(
name: "e2e"
train_steps: 150
batch_size: 32
model { kind: "mlp" hidden_units: 32 }
optimizer { kind: MOMENTUM }
learning_rate: 0.05
max_part_bytes: 1024
heartbeat_interval { nanos: 200000000 }
lease { seconds: 20 }
stall_timeout { seconds: 20 }
data {
  train_images: "$0/train-images"
  train_labels: "$0/train-labels"
  test_images: "$0/test-images"
  test_labels: "$0/test-labels"
}
checkpoint { directory: "$1" }
)";

// The names of two files, or directories, change places.
void Exchange(const std::string& one, const std::string& other) {
  EXPECT_EQ(renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(),
                      RENAME_EXCHANGE),
            0)
      << one << ": " << strerror(errno);
}

}  // namespace

bool TlsByEnvironment() { return std::getenv("LOCKSTEP_TEST_TLS") != nullptr; }

TrainingJob::~TrainingJob() {
  if (!::testing::Test::HasFailure() || cluster_ == nullptr) return;
  for (const auto& [job, index] : Tasks()) {
    const absl::StatusOr<ChildProcess*> process = cluster_->Process(job, index);
    if (!process.ok()) continue;
    std::cerr << "---- the last words of " << job << " " << index << " ----\n"
              << (*process)->LastWords();
  }
}

std::unique_ptr<TrainingJob> TrainingJob::Make(const Options& options) {
  std::unique_ptr<TrainingJob> job(new TrainingJob(options));
  const absl::Status status = job->Prepare();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) std::abort();
  return job;
}

absl::Status TrainingJob::Prepare() {
  if (options_.checkpoints.empty()) {
    options_.checkpoints = directory_.Join("checkpoints");
  }
  job_file_ = directory_.Join("job.textproto");
  if (options_.state_directory.empty()) {
    options_.state_directory = directory_.Join("state");
  }
  LOCKSTEP_RETURN_IF_ERROR(WritePictures(
      {directory_.Join("train-images"), directory_.Join("train-labels")},
      options_.pictures));
  LOCKSTEP_RETURN_IF_ERROR(WritePictures(
      {directory_.Join("test-images"), directory_.Join("test-labels")}, 200));
  LOCKSTEP_RETURN_IF_ERROR(WriteJob());
  LOCKSTEP_ASSIGN_OR_RETURN(cluster_, ProcessCluster::Create(Plan()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::string address,
      cluster_->Address(options_.chief ? "chief" : "worker", 0));
  const std::shared_ptr<TransportSecurity> before = OwnSecurity();
  if (options_.tls) LOCKSTEP_RETURN_IF_ERROR(Secure());
  chief_ = std::make_unique<cli::CoordinatorClient>(address);
  SetOwnSecurity(before);
  return absl::OkStatus();
}

// Gives each task its certificate, and this process an operator's.
absl::Status TrainingJob::Secure() {
  const TestAuthority authority;
  for (const auto& [name, index] : Tasks()) {
    const auto uri = [](absl::string_view role, int i) {
      return absl::StrCat("lockstep://e2e/", role, "/", i);
    };
    std::vector<std::string> uris = {uri(name, index)};
    const bool hosts_chief = name == "worker" && index == 0;
    if (options_.servers == 0 && name != "evaluator") {
      const int rank = name == "chief" ? 0 : index + (options_.chief ? 1 : 0);
      uris = {uri("worker", rank), uri("ps", rank)};
      if (name == "chief") uris.push_back(uri("chief", 0));
    }
    if (!options_.chief && hosts_chief) uris.push_back(uri("chief", 0));
    const std::string own =
        directory_.Join(absl::StrCat("tls-", name, "-", index));
    WriteTlsFiles(own, authority.FilesOf(
                           authority.IssueAll(uris, TestAuthority::Valid())));
    cluster_->AddArgument(name, index, "--tls_dir=" + own);
  }
  const std::string own = directory_.Join("tls-operator");
  WriteTlsFiles(own, authority.Files("lockstep://e2e/operator/steer"));
  LOCKSTEP_ASSIGN_OR_RETURN(auto security, TransportSecurity::Load({own, ""}));
  SetOwnSecurity(std::move(security));
  return absl::OkStatus();
}

absl::Status TrainingJob::WriteJob() const {
  std::ofstream file(job_file_);
  file << absl::Substitute(kJob, directory_.path(), options_.checkpoints)
       << options_.more_job;
  file.close();
  if (file) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", job_file_));
}

ProcessCluster::Options TrainingJob::Plan() const {
  std::vector<std::string> chief = {"--job", job_file_};
  for (const std::string& assignment : options_.set) {
    chief.insert(chief.end(), {"--set", assignment});
  }
  std::vector<std::string> ps = options_.more_args;
  ps.insert(ps.end(), {"--state_dir", options_.state_directory});
  std::vector<std::string> worker = options_.more_args;
  std::vector<std::string> evaluator = options_.more_args;
  evaluator.push_back("--evaluate");
  ProcessCluster::Options plan;
  plan.log_directory = directory_.path();
  const bool mirrors = options_.servers == 0;
  if (mirrors) worker = ps;
  if (options_.chief && mirrors) {
    chief.insert(chief.end(), ps.begin(), ps.end());
    plan.jobs["chief"] = {1, {ProgramPath("worker"), chief}};
  } else if (options_.chief) {
    plan.jobs["chief"] = {1, {ProgramPath("chief"), chief}};
  } else {
    worker.insert(worker.end(), chief.begin(), chief.end());
  }
  if (!mirrors) {
    plan.jobs["ps"] = {options_.servers, {ProgramPath("ps_server"), ps}};
  }
  const std::string program = options_.compute_program.empty()
                                  ? ProgramPath("worker")
                                  : options_.compute_program;
  plan.jobs["worker"] = {options_.workers, {program, worker}};
  if (!options_.worker_program.path.empty()) {
    plan.jobs["worker"].program = options_.worker_program;
  }
  if (options_.evaluator) {
    plan.jobs["evaluator"] = {1, {program, evaluator}};
  }
  return plan;
}

std::vector<std::pair<std::string, int>> TrainingJob::Tasks() const {
  std::vector<std::pair<std::string, int>> tasks;
  for (int i = 0; i < options_.servers; ++i) tasks.emplace_back("ps", i);
  if (options_.chief) tasks.emplace_back("chief", 0);
  for (int i = 0; i < options_.workers; ++i) tasks.emplace_back("worker", i);
  if (options_.evaluator) tasks.emplace_back("evaluator", 0);
  return tasks;
}

absl::Status TrainingJob::AwaitRegistered(const std::string& task, int index) {
  return cluster_->WaitForLog(
      "chief", 0, absl::StrCat(task, " ", index, " registered"), kPatience);
}

absl::Status TrainingJob::StartServersLast() {
  for (const auto& [name, index] : Tasks()) {
    if (name == "ps") continue;
    LOCKSTEP_RETURN_IF_ERROR(cluster_->Start(name, index));
  }
  for (const auto& [name, index] : Tasks()) {
    if (name == "ps" || name == "chief") continue;
    LOCKSTEP_RETURN_IF_ERROR(AwaitRegistered(name, index));
  }
  return StartAll();
}

absl::Status TrainingJob::Run() {
  // Training does not wait for an evaluator, and one that comes after the end
  // of a short job finds no chief.
  if (options_.evaluator && options_.chief) {
    LOCKSTEP_RETURN_IF_ERROR(cluster_->Start("chief", 0));
    LOCKSTEP_RETURN_IF_ERROR(cluster_->Start("evaluator", 0));
    LOCKSTEP_RETURN_IF_ERROR(AwaitRegistered("evaluator", 0));
  }
  LOCKSTEP_RETURN_IF_ERROR(StartAll());
  return cluster_->WaitAllSucceed(kPatience);
}

absl::StatusOr<JobStatus> TrainingJob::GetStatus() const {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::StatusOr<JobStatus> status = TryStatus();
  while (!status.ok() && absl::Now() < deadline) {
    absl::SleepFor(kPollInterval);
    status = TryStatus();
  }
  return status;
}

absl::StatusOr<JobStatus> TrainingJob::TryStatus() const {
  return chief_->GetStatus(kCallTimeout);
}

absl::Status TrainingJob::WaitForStep(int64_t step) const {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::StatusOr<JobStatus> status;
  while (absl::Now() < deadline) {
    status = TryStatus();
    if (status.ok() && status->step >= step) return absl::OkStatus();
    if (status.ok() && IsFinal(status->state)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the job is ", JobStateName(status->state), " at step ",
                       status->step, ": ", status->reason));
    }
    absl::SleepFor(kPollInterval);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("step ", step, " was not reached; ",
                   status.ok() ? absl::StrCat("the job is at ", status->step)
                               : std::string(status.status().message())));
}

std::string TrainingJob::ChiefLog() const {
  return cluster_->ReadLog("chief", 0).value_or("");
}

void TrainingJob::ExpectOthersSucceed(int worker) {
  for (const auto& [name, index] : Tasks()) {
    if (name == "worker" && index == worker) continue;
    EXPECT_THAT(cluster_->Wait(name, index, kPatience),
                IsOkAndHolds(cli::TaskExit{}))
        << name << " " << index;
  }
}

std::vector<std::string> TrainingJob::StateFiles() const {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.state_directory, absent)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

void UseProgram(TrainingJob::Options& options) {
  options.worker_program = {ProgramPath("session_worker"), {}};
  options.set.insert(options.set.end(),
                     {"model.kind=external", "model.hidden_units=",
                      "learning_rate=0.01", "optimizer.kind=ADAM_TORCH",
                      "max_part_bytes=64"});  // several servers have parts
}

std::string ReadCheckpoint(const std::string& checkpoints, int64_t step,
                           const std::string& file) {
  const std::string path =
      absl::StrCat(checkpoints, "/", StepDirectoryName(step), "/", file);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  EXPECT_FALSE(bytes.str().empty()) << path << " is missing";
  return bytes.str();
}

void PutInTheWay(const std::string& directory) {
  const std::string aside = absl::StrCat(directory, ".aside");
  std::ofstream(aside) << "in the way";
  Exchange(directory, aside);
}

void TakeOutOfTheWay(const std::string& directory) {
  const std::string aside = absl::StrCat(directory, ".aside");
  Exchange(directory, aside);
  std::filesystem::remove(aside);
}

void RemoveState(const TrainingJob& job, int server) {
  const std::string end = absl::StrCat(".ps-", server, ".state");
  int removed = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(job.state_directory())) {
    if (entry.path().filename().string().find(end) == std::string::npos) {
      continue;
    }
    removed += std::filesystem::remove(entry.path()) ? 1 : 0;
  }
  EXPECT_GE(removed, 1) << "no state of ps " << server;
}

void ExpectSameBits(const std::string& checkpoints, const std::string& others,
                    int64_t step) {
  for (const char* file : {kModelFile, kOptimizerFile}) {
    EXPECT_TRUE(ReadCheckpoint(checkpoints, step, file) ==
                ReadCheckpoint(others, step, file))
        << file << " of step " << step << " differs";
  }
}

}  // namespace lockstep::testing
