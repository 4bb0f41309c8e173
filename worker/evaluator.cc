#include "worker/evaluator.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/directory_owner.h"
#include "worker/data/data_root.h"
#include "worker/data/files/file_reading.h"
#include "worker/device/compute_device.h"
#include "worker/scoring/checkpoint_choice.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);

// Checks that an empty directory is that of the job: the chief marks it before
// it lets an evaluator in.
absl::Status CheckSeen(const std::string& directory) {
  if (DirectoryOwner::IsMarked(directory)) return absl::OkStatus();
  std::error_code ignored;
  return absl::NotFoundError(absl::StrCat(
      "there is no checkpoint in ",
      std::filesystem::absolute(directory, ignored).lexically_normal().string(),
      ", and it is not the directory that the chief has marked as the job's; "
      "set checkpoint.directory to an absolute path that the evaluator's host "
      "has, too"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Make(
    const Cluster& cluster, const Options& options) {
  ChiefClient::Options chief;
  LOCKSTEP_ASSIGN_OR_RETURN(chief.address, cluster.Address(cluster.chief()));
  chief.own_address = cluster.Address(cluster.self()).value_or("");
  chief.task = cluster.self();
  chief.expected_job = options.expected_job;
  chief.chief_wait = options.chief_wait;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ComputeBackend> backend,
      OpenComputeDevice(options.device, options.compute_threads));
  return std::unique_ptr<Evaluator>(
      new Evaluator(std::move(chief), std::move(backend), options));
}

Evaluator::Evaluator(ChiefClient::Options chief,
                     std::unique_ptr<ComputeBackend> backend,
                     const Options& options)
    : backend_(std::move(backend)),
      data_roots_(options.data_roots),
      progress_(Clock::Real()),
      // The progress refers to this object, so it can be set only here.
      chief_([&] {
        chief.progress = [this] { return progress_.Get(); };
        return std::move(chief);
      }()) {}

void Evaluator::RequestStop(const std::string&) { chief_.Stop(); }

void Evaluator::SetTrouble(const absl::Status& status) {
  if (trouble_ == status.message()) return;
  progress_.SetTrouble(std::string(status.message()));
  // kOk has an empty message, which clears the trouble.
  trouble_ = std::string(status.message());
  if (!status.ok()) spdlog::warn("no score: {}", trouble_);
}

absl::Status Evaluator::Prepare(const JobConfig& job) {
  scorer_ = nullptr;
  if (!job.data.has_test_set() || job.checkpoint.directory.empty()) {
    spdlog::warn(
        "nothing to score: the job has no data.test_images, test_text or "
        "test_files, or no checkpoint.directory");
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckEvaluatorFiles(job, data_roots_));
  progress_.Begin("reads the test set");
  const FileReading::Scope reads(progress_.reading());
  LOCKSTEP_ASSIGN_OR_RETURN(scorer_, CheckpointScorer::Make(job, *backend_));
  return absl::OkStatus();
}

absl::Status Evaluator::Run() {
  absl::Status status;
  do {
    absl::StatusOr<ChiefClient::Registration> membership = chief_.Register();
    if (!membership.ok()) return membership.status();
    status = Prepare(membership->job);
    if (status.ok()) status = Watch(membership->job);
    // A lost lease is no end of the job: the chief takes the process back under
    // a new registration.
  } while (chief_.lease_lost());
  const LeaveCause cause = status.ok() ? LeaveCause::kDone
                           : absl::IsCancelled(status)
                               ? LeaveCause::kStopped
                               : LeaveCause::kCannotTakePart;
  chief_.Leave(cause, status.ok() ? "done" : std::string(status.message()));
  return status;
}

absl::Status Evaluator::Agree() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<ExampleShape> examples,
                            chief_.WaitForExamples());
  return examples.has_value() ? scorer_->FitTo(*examples) : absl::OkStatus();
}

absl::Status Evaluator::Watch(const JobConfig& job) {
  if (scorer_ != nullptr) {
    progress_.Begin("waits for the workers' model");
    const absl::Status status = Agree();
    // The end of the job explains any error of Agree().
    if (chief_.ended()) return chief_.end();
    LOCKSTEP_RETURN_IF_ERROR(status);
  }
  const CheckpointStore store(job.checkpoint.directory);
  std::optional<Manifest> last;
  progress_.Begin(scorer_ == nullptr ? "has nothing to score"
                                     : "waits for a checkpoint");
  while (!chief_.WaitForEnd(kPoll)) {
    if (chief_.stopped()) return absl::CancelledError("asked to stop");
    // There is nothing to do, but the task must not end before the job.
    if (scorer_ == nullptr) continue;
    const absl::Status status = ScoreLatest(store, last);
    // No later checkpoint would have a score either: leave, so that the job
    // does not wait for one.
    if (absl::IsFailedPrecondition(status)) return status;
    // A checkpoint that was pruned meanwhile has a newer one.
    if (!absl::IsCancelled(status)) SetTrouble(status);
  }
  return chief_.end();
}

absl::Status Evaluator::ScoreLatest(const CheckpointStore& store,
                                    std::optional<Manifest>& last) {
  LOCKSTEP_ASSIGN_OR_RETURN(LatestCheckpoint latest, store.Latest());
  if (!latest.manifest.has_value()) {
    return last.has_value() ? absl::OkStatus() : CheckSeen(store.directory());
  }
  const int64_t step = latest.manifest->global_step;
  if (!MustScore(*latest.manifest, last)) return absl::OkStatus();
  SetLogStep(step);
  progress_.Begin(absl::StrCat("scores step ", step));
  const absl::Cleanup scored = [this] {
    progress_.Begin("waits for a checkpoint");
  };
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader reader, store.Open(step));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const TableScore score,
      scorer_->Score(reader, [this](int64_t done, int64_t total) {
        progress_.Advance(done, total);
      }));
  LOCKSTEP_ASSIGN_OR_RETURN(latest, store.Latest());
  if (latest.manifest.has_value() &&
      IsLost(reader.manifest(), *latest.manifest)) {
    return absl::CancelledError(
        absl::StrCat("the job has gone back from step ", step));
  }
  LOCKSTEP_RETURN_IF_ERROR(chief_.ReportEvaluation(
      step, {score.loss, score.accuracy, score.examples, score.auc}));
  spdlog::info("step {}: accuracy {:.4f}, loss {:.4f}{}", step, score.accuracy,
               score.loss,
               score.auc.has_value() ? absl::StrFormat(", AUC %.4f", *score.auc)
                                     : std::string());
  last = reader.manifest();
  return absl::OkStatus();
}

}  // namespace lockstep::worker
