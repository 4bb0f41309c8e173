#include "worker/session/evaluation.h"

#include <unistd.h>

#include <utility>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/membership/chief_client.h"
#include "common/plan/progress.h"
#include "common/program/main_support.h"

namespace lockstep::worker {

struct Evaluation::Parts {
  explicit Parts(ChiefClient::Options options)
      : chief([&] {
          options.progress = [this] { return Standing(); };
          return std::move(options);
        }()) {}

  Progress Standing() const ABSL_LOCKS_EXCLUDED(mutex) {
    MutexLock lock(mutex);
    Progress progress;
    progress.trouble = trouble;
    progress.cannot_score = !trouble.empty();
    return progress;
  }

  const pid_t process = getpid();
  mutable Mutex mutex;
  std::string trouble ABSL_GUARDED_BY(mutex);
  ChiefClient chief;
  bool joined = false;
  int joins = 0;
  std::string job_name;
  bool scores_averages = true;
  std::string directory;
  absl::Status end;
};

absl::StatusOr<std::unique_ptr<Evaluation>> Evaluation::Make(
    const Options& options) {
  CommonFlags flags;
  flags.tf_config = options.tf_config;
  flags.insecure = OptionOfProgram("", "LOCKSTEP_INSECURE") == "1";
  flags.tls_dir = OptionOfProgram(options.tls_dir, "LOCKSTEP_TLS_DIR");
  flags.log_level = LogLevelOfProgram(options.log_level);
  flags.exit_with_parent = options.exit_with_parent;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Cluster cluster,
      StartProcess(flags, {TaskType::kEvaluator}, "an evaluator program"));
  ChiefClient::Options chief;
  LOCKSTEP_ASSIGN_OR_RETURN(chief.address, cluster.Address(cluster.chief()));
  // A cluster need not list its evaluator, as in TensorFlow.
  chief.own_address = cluster.Address(cluster.self()).value_or("");
  chief.task = cluster.self();
  chief.expected_job = options.expected_job;
  chief.chief_wait = options.chief_wait;
  return std::unique_ptr<Evaluation>(
      new Evaluation(std::make_unique<Parts>(std::move(chief))));
}

Evaluation::Evaluation(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}

Evaluation::~Evaluation() {
  if (parts_->process == getpid()) {
    Leave("the program has ended");
  } else {
    // In a forked child the threads do not exist, so they cannot be joined: the
    // parts are leaked.
    static_cast<void>(parts_.release());
  }
}

absl::Status Evaluation::Join() {
  const absl::StatusOr<ChiefClient::Registration> membership =
      parts_->chief.Register();
  parts_->end = membership.status();
  LOCKSTEP_RETURN_IF_ERROR(membership.status());
  parts_->joined = true;
  ++parts_->joins;
  parts_->job_name = membership->job.name;
  parts_->directory = membership->job.checkpoint.directory;
  parts_->scores_averages = membership->job.moving_average.evaluate;
  return absl::OkStatus();
}

absl::StatusOr<bool> Evaluation::Wait(absl::Duration timeout) {
  if (!parts_->joined) {
    return absl::FailedPreconditionError("the evaluator has not joined");
  }
  bool over = parts_->chief.WaitForEnd(timeout);
  if (parts_->chief.lease_lost()) {
    over = false;  // of the membership alone
    // The chief has given this task up, and lets it in again as a new member.
    const absl::Status joined = Join();
    if (joined.ok()) return false;
    // Otherwise RequestStop() has ended the registration.
    if (!parts_->chief.stopped()) {
      parts_->joined = false;
      return joined;
    }
  }
  if (over) {
    parts_->end = parts_->chief.end();
  } else if (parts_->chief.stopped()) {
    parts_->end = absl::CancelledError("asked to stop");
  }
  return over || parts_->chief.stopped();
}

int Evaluation::joins() const { return parts_->joins; }

absl::Status Evaluation::end() const { return parts_->end; }

int Evaluation::exit_code() const { return ExitCodeOf(parts_->end); }

const std::string& Evaluation::checkpoint_directory() const {
  return parts_->directory;
}

const std::string& Evaluation::job_name() const { return parts_->job_name; }

bool Evaluation::scores_averages() const { return parts_->scores_averages; }

absl::Status Evaluation::Report(int64_t step,
                                const std::vector<NamedFigure>& figures) {
  if (figures.empty()) {
    return absl::InvalidArgumentError(
        "no figure was given; report one by its name, as test_accuracy=0.9");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckFigures(figures));
  ChiefClient::Score score;
  score.figures = figures;
  return parts_->chief.ReportEvaluation(step, score);
}

void Evaluation::Leave(const std::string& reason) {
  if (parts_->process != getpid()) return;
  // The chief hears the first reason only.
  if (!std::exchange(parts_->joined, false)) return;
  parts_->chief.Leave(reason.empty() ? LeaveCause::kDone
                      : absl::IsCancelled(parts_->end)
                          ? LeaveCause::kStopped
                          : LeaveCause::kCannotTakePart,
                      reason.empty() ? "done" : reason);
}

void Evaluation::SetTrouble(const std::string& trouble) {
  MutexLock lock(parts_->mutex);
  parts_->trouble = trouble;
}

void Evaluation::RequestStop() { parts_->chief.Stop(); }

}  // namespace lockstep::worker
