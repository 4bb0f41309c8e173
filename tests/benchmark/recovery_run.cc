#include "tests/benchmark/recovery_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/step_directory.h"
#include "common/cluster/host_port.h"
#include "deploy/cli/config/connection_probe.h"
#include "tests/e2e/picture_files.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::ProcessCluster;
using ::lockstep::testing::ProgramPath;

constexpr absl::Duration kPatience = absl::Minutes(3);
constexpr absl::Duration kPoll = absl::Milliseconds(2);
constexpr absl::Duration kCallTimeout = absl::Seconds(2);
// If no step is committed for this long, the job has come to rest.
constexpr absl::Duration kRest = absl::Seconds(1);
constexpr int kServers = 2;
constexpr int kWorkers = 2;
// In a model with two hidden layers over 8 x 8 pixels and ten classes: floats
// per unit of the first hidden layer. The rest is small.
constexpr int64_t kFloatsOfAUnit = 64 + 1 + 512;
constexpr int64_t kBlock = int64_t{4} << 20;

// Small steps; the results of training do not matter.
constexpr char kJob[] = R"(
name: "recovery_benchmark"
train_steps: 100000000
batch_size: 1
model { kind: "mlp" hidden_units: [ $0, 512 ] }
optimizer { kind: MOMENTUM }
learning_rate: 0.0000001
data { train_images: "$1/images" train_labels: "$1/labels" }
checkpoint { directory: "$2" every_steps: 100000000 }
)";

std::pair<std::string, int> TaskOf(Victim victim) {
  if (victim == Victim::kWorker) return {"worker", 1};
  if (victim == Victim::kChief) return {"chief", 0};
  return {"ps", 1};
}

// Calls `done` until it returns true or an error.
template <typename Done>
absl::Status Await(const std::string& what, Done done) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return absl::OkStatus();
    absl::SleepFor(kPoll);
  }
  return absl::DeadlineExceededError(absl::StrCat("waited in vain for ", what));
}

absl::Status ReadTensors(const SafetensorsReader& file,
                         std::vector<char>& bytes) {
  for (const StoredTensor& tensor : file.header().tensors) {
    const auto size = static_cast<int64_t>(tensor.bytes);
    for (int64_t at = 0; at < size; at += kBlock) {
      LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(
          tensor.name, at,
          absl::MakeSpan(bytes).first(std::min(kBlock, size - at))));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string VictimName(Victim victim) {
  switch (victim) {
    case Victim::kWorker:
      return "worker";
    case Victim::kServer:
      return "ps";
    case Victim::kChief:
      return "chief";
    case Victim::kServerWithoutState:
      return "ps without state";
  }
  return "nobody";
}

absl::StatusOr<std::unique_ptr<RecoveryRun>> RecoveryRun::Start(
    int64_t bytes, const std::string& directory,
    const std::string& state_directory) {
  std::unique_ptr<RecoveryRun> run(new RecoveryRun(directory, state_directory));
  LOCKSTEP_RETURN_IF_ERROR(run->WriteFiles(bytes));
  LOCKSTEP_RETURN_IF_ERROR(run->StartCluster());
  LOCKSTEP_RETURN_IF_ERROR(run->AwaitStepAfter(2).status());
  return run;
}

absl::Status RecoveryRun::WriteFiles(int64_t bytes) const {
  LOCKSTEP_RETURN_IF_ERROR(lockstep::testing::WritePictures(
      {directory_ + "/images", directory_ + "/labels"}, 200));
  const int64_t units = std::max<int64_t>(
      1, bytes / static_cast<int64_t>(sizeof(float)) / kFloatsOfAUnit);
  std::ofstream file(job_file_);
  file << absl::Substitute(kJob, units, directory_, checkpoints_) << std::flush;
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", job_file_));
}

absl::Status RecoveryRun::StartCluster() {
  ProcessCluster::Options options;
  options.log_directory = directory_;
  options.jobs = {
      {"chief", {1, {ProgramPath("chief"), {"--job", job_file_}}}},
      {"ps",
       {kServers,
        {ProgramPath("ps_server"), {"--state_dir", state_directory_}}}},
      {"worker",
       {kWorkers, {ProgramPath("worker"), {"--compute_threads", "1"}}}}};
  LOCKSTEP_ASSIGN_OR_RETURN(cluster_,
                            ProcessCluster::Create(std::move(options)));
  LOCKSTEP_RETURN_IF_ERROR(cluster_->StartAll());
  LOCKSTEP_RETURN_IF_ERROR(AwaitPort("chief", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster_->Address("chief", 0));
  chief_ = std::make_unique<cli::CoordinatorClient>(address);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RecoveryRun::AwaitStepAfter(int64_t step) {
  int64_t now = 0;
  LOCKSTEP_RETURN_IF_ERROR(
      Await(absl::StrCat("a step after ", step), [&]() -> absl::StatusOr<bool> {
        LOCKSTEP_ASSIGN_OR_RETURN(JobStatus status,
                                  chief_->GetStatus(kCallTimeout));
        if (IsFinal(status.state)) {
          return absl::FailedPreconditionError(
              absl::StrCat("the job has ended: ", status.reason));
        }
        now = status.step;
        return now > step;
      }));
  return now;
}

absl::Status RecoveryRun::AwaitPort(const std::string& job, int index) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text, cluster_->Address(job, index));
  LOCKSTEP_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(text));
  return Await(absl::StrCat("the port of ", job, " ", index),
               [&]() -> absl::StatusOr<bool> {
                 return cli::ProbeConnection(address, kCallTimeout).reached;
               });
}

absl::StatusOr<int64_t> RecoveryRun::AwaitRest(Victim victim) {
  if (victim == Victim::kChief) {
    absl::SleepFor(kRest);
    return 0;
  }
  int64_t step = -1;
  absl::Time since = absl::Now();
  LOCKSTEP_RETURN_IF_ERROR(Await("rest", [&]() -> absl::StatusOr<bool> {
    LOCKSTEP_ASSIGN_OR_RETURN(JobStatus status,
                              chief_->GetStatus(kCallTimeout));
    if (std::exchange(step, status.step) != status.step) since = absl::Now();
    return absl::Now() - since > kRest;
  }));
  return step;
}

absl::Status RecoveryRun::RemoveStateFile() const {
  const std::string part = absl::StrCat(".ps-", TaskOf(Victim::kServer).second);
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(state_directory_)) {
    if (absl::StrContains(entry.path().filename().string(), part)) {
      files.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& file : files) std::filesystem::remove(file);
  if (!files.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no state file ", part, " in ", state_directory_));
}

absl::StatusOr<absl::Duration> RecoveryRun::PrepareGoingBack() {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t wanted,
                            chief_->Checkpoint(kCallTimeout));
  JobStatus status;
  LOCKSTEP_RETURN_IF_ERROR(Await("a checkpoint", [&]() -> absl::StatusOr<bool> {
    LOCKSTEP_ASSIGN_OR_RETURN(status, chief_->GetStatus(kCallTimeout));
    return status.last_checkpoint_step >= wanted;
  }));
  LOCKSTEP_RETURN_IF_ERROR(AwaitStepAfter(status.step + 1).status());
  ForgetCheckpoint(status.last_checkpoint_step);
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::Duration read,
                            ReadCheckpoint(status.last_checkpoint_step));
  ForgetCheckpoint(status.last_checkpoint_step);
  recoveries_ = status.losses.recoveries;
  return read;
}

absl::StatusOr<absl::Duration> RecoveryRun::ReadCheckpoint(int64_t step) const {
  const absl::Time began = absl::Now();
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader checkpoint,
                            CheckpointReader::Open(checkpoints_, step));
  std::vector<char> bytes(kBlock);
  LOCKSTEP_RETURN_IF_ERROR(ReadTensors(checkpoint.model(), bytes));
  LOCKSTEP_RETURN_IF_ERROR(ReadTensors(checkpoint.optimizer(), bytes));
  return absl::Now() - began;
}

void RecoveryRun::ForgetCheckpoint(int64_t step) const {
  for (const char* name : {kModelFile, kOptimizerFile}) {
    const std::string path =
        absl::StrCat(checkpoints_, "/", StepDirectoryName(step), "/", name);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

absl::Status RecoveryRun::AwaitGoingOn(Victim victim, int64_t rest) {
  if (victim == Victim::kWorker || victim == Victim::kServer) {
    return AwaitStepAfter(rest).status();
  }
  // The first step from now on, when it is known.
  int64_t first = -1;
  return Await("the job to go on", [&]() -> absl::StatusOr<bool> {
    LOCKSTEP_ASSIGN_OR_RETURN(JobStatus status,
                              chief_->GetStatus(kCallTimeout));
    if (status.state != JobState::kTraining) return false;
    if (victim == Victim::kServerWithoutState &&
        status.losses.recoveries == recoveries_) {
      return false;
    }
    if (first < 0) first = status.step;
    return status.step > first;
  });
}

absl::StatusOr<Recovery> RecoveryRun::Measure(Victim victim) {
  const auto [job, index] = TaskOf(victim);
  Recovery recovery;
  if (victim == Victim::kServerWithoutState) {
    LOCKSTEP_ASSIGN_OR_RETURN(recovery.read_checkpoint, PrepareGoingBack());
  }
  if (victim == Victim::kChief) chief_.reset();
  LOCKSTEP_RETURN_IF_ERROR(cluster_->Kill(job, index));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t rest, AwaitRest(victim));
  if (victim == Victim::kServerWithoutState) {
    LOCKSTEP_RETURN_IF_ERROR(RemoveStateFile());
  }
  const absl::Time began = absl::Now();
  LOCKSTEP_RETURN_IF_ERROR(cluster_->Start(job, index));
  LOCKSTEP_RETURN_IF_ERROR(AwaitPort(job, index));
  recovery.up = absl::Now() - began;
  if (victim == Victim::kChief) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                              cluster_->Address("chief", 0));
    chief_ = std::make_unique<cli::CoordinatorClient>(address);
  }
  LOCKSTEP_RETURN_IF_ERROR(AwaitGoingOn(victim, rest));
  recovery.going_on = absl::Now() - began;
  return recovery;
}

}  // namespace lockstep::benchmark
