#include "chief/chief.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/job_identity.h"
#include "chief/traces/chief_spans.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/cluster_fit.h"
#include "common/job/strategy_checks.h"
#include "common/process/new_thread.h"
#include "common/status/status_codec.h"
#include "common/text/count_text.h"

namespace lockstep::chief {
namespace {

// A member that has missed this many heartbeats may be dead.
constexpr int kMissedHeartbeats = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Make(const Cluster& cluster,
                                                   JobConfig job,
                                                   uint64_t incarnation,
                                                   const Clock& clock,
                                                   Beginning beginning) {
  LOCKSTEP_RETURN_IF_ERROR(cluster.ValidateForParameterServers());
  LOCKSTEP_ASSIGN_OR_RETURN(
      job, FitToCluster(std::move(job), cluster.num_workers()));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckStrategyServers(job, cluster.num_workers(),
                           cluster.hosts_mirrors() ? 0 : cluster.num_ps()));
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  const Sender self{MakeJobId(job, cluster), cluster.chief(), incarnation};
  std::unique_ptr<Chief> chief(new Chief(cluster, std::move(job), self,
                                         std::move(servers), clock, beginning));
  if (chief->checkpoints_.none() && beginning.step >= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--from ", beginning.step, ": the job has no checkpoint.directory"));
  }
  LOCKSTEP_RETURN_IF_ERROR(chief->checkpoints_.Own(self.job_id));
  return chief;
}

Chief::Chief(const Cluster& cluster, JobConfig job, const Sender& self,
             std::vector<std::string> servers, const Clock& clock,
             Beginning beginning)
    : job_(std::move(job)),
      self_(self),
      beginning_(beginning),
      evaluator_in_cluster_(cluster.has_evaluator()),
      // A user's evaluator has a test set of its own.
      has_evaluator_(
          cluster.has_evaluator() &&
          (job_.data.has_test_set() || job_.model.kind == kExternalModel) &&
          !job_.checkpoint.directory.empty()),
      clock_(clock),
      members_(MembersOf(cluster), job_.lease,
               kMissedHeartbeats * job_.heartbeat_interval),
      settings_table_(job_),
      given_values_(job_.checkpoint.directory),
      trace_service_(self_.job_id, job_, members_, traces_, spans_, clock_),
      servers_(servers, self),
      checkpoints_(job_.checkpoint,
                   [this](const std::string& text) { Notify(text); }),
      driver_(job_,
              {.num_servers = servers_.size(),
               .beginning = beginning,
               .has_evaluator = has_evaluator_},
              members_, clock.Now()) {
  service_ = std::make_unique<CoordinatorService>(
      CoordinatorService::Options{self_.job_id, job_, cluster.num_workers(),
                                  cluster.has_evaluator(),
                                  [this](const std::string& reason, bool hold) {
                                    RequestStop(reason, hold);
                                  },
                                  &given_values_, &traces_},
      members_, status_table_, settings_table_, clock_);
  status_table_.SetSettings(driver_.settings(), clock_.Now());
}

Chief::~Chief() { JoinCheckpoint(); }

std::vector<StatusPage> Chief::RecordForPage() {
  recorder_ = std::make_unique<Recorder>(Recorder::Options{
      job_.checkpoint.directory, job_.name, [this] { return Sample(); },
      [this] { return DecodeStatus(service_->StatusForOperators()); },
      job_.heartbeat_interval});
  return recorder_->Pages();
}

void Chief::RequestStop(const std::string& reason, bool hold) {
  const absl::Status stop = StoppedStatus(reason, hold);
  settings_table_.Stop(reason);
  events_.Push(StopWanted{stop});
  // During a round the queue of events is not read.
  recovery_.RequestStop(stop);
}

absl::Status Chief::Run() {
  SetLogJob(job_.name);
  spdlog::info("job {} ({}), {} of {} gradients a step", job_.name,
               self_.job_id, job_.replicas_to_aggregate,
               job_.total_num_replicas);
  if (evaluator_in_cluster_ && !has_evaluator_) {
    Notify(absl::StrCat(
        "evaluator 0 has nothing to score: the job has no ",
        checkpoints_.none() ? "checkpoint.directory" : "test set in data",
        "; name one, or leave the evaluator out"));
  }
  // Destroyed, after its last points, before the members that it samples.
  std::optional<SummaryThread> summary;
  if (!job_.summary.directory.empty()) {
    summary.emplace(
        job_, absl::Now(), [this] { return Sample(); },
        [this](const std::string& trouble) { Notify(trouble); });
  }
  Deliver(Started{checkpoints_.Prepare(beginning_)});
  while (!finished_.has_value()) {
    DeliverWishes();
    const absl::Duration rest = driver_.next() - clock_.Now();
    Deliver(
        events_.PopFor(std::max(rest, absl::ZeroDuration())).value_or(Tick{}));
  }
  if (!finished_->is_writing) JoinCheckpoint();
  return finished_->status;
}

void Chief::Deliver(const JobEvent& event) {
  Carry(driver_.On(event, clock_.Now()));
}

void Chief::DeliverWishes() {
  if (!told_model_ && !status_table_.variables().empty()) {
    told_model_ = true;
    Deliver(ModelDescribed{});
  }
  if (driver_.TakesSettings()) {
    const RunSettings wanted = settings_table_.wanted();
    if (!(wanted == driver_.wanted_settings())) Deliver(SettingsWanted{wanted});
  }
  if (settings_table_.checkpoint_wanted()) {
    settings_table_.CheckpointBegun();  // first: a later request is another one
    Deliver(CheckpointWanted{});
  }
  if (const int64_t scored = status_table_.scored_step();
      scored != told_score_) {
    told_score_ = scored;
    Deliver(Scored{scored});
  }
}

SummarySample Chief::Sample() const {
  SummarySample sample{clock_.Now(), status_table_.Get(clock_.Now()),
                       members_.Members()};
  sample.learning_rate = LearningRateInEffect(
      job_, sample.job.settings.learning_rate_scale, sample.job.global_step);
  sample.tunes_backups = job_.tune_backups || job_.shares_work();
  return sample;
}

void Chief::Notify(const std::string& text) {
  spdlog::warn("{}", text);
  status_table_.Notify(text, clock_.Now());
}

// Actions.

void Chief::Carry(const JobActions& actions) {
  for (const JobAction& action : actions) {
    std::visit([this](const auto& one) { Do(one); }, action);
  }
}

void Chief::Do(const Take& take) {
  servers_.server(take.server)
      .TakeAndApply(
          take.step, take.commit_until, take.attempt, take.norm,
          [this, take, began = spans_.Now()](absl::Status status,
                                             const TakeResult& answer) {
            RecordTake(spans_, began, take.server, take.step, answer.attempt);
            events_.Push(TakeAnswered{take.round, take.server, take.step,
                                      std::move(status), answer, take.call});
          });
}

void Chief::Do(const Commit& commit) {
  servers_.server(0).Commit(
      commit.step, commit.attempt, commit.contributors,
      [this, round = commit.round, step = commit.step, attempt = commit.attempt,
       began = spans_.Now()](absl::Status status, int64_t redone_attempt) {
        RecordCommit(spans_, began, step - 1, attempt);
        events_.Push(CommitAnswered{round, step, attempt, std::move(status),
                                    redone_attempt});
      });
}

void Chief::Do(const TellCommit& tell) {
  for (const int server : tell.servers) {
    servers_.server(server).Commit(tell.step, tell.attempt, {},
                                   [](const absl::Status&, int64_t) {});
  }
}

void Chief::Do(const Expire& expire) {
  servers_.server(expire.server)
      .StartExpireWorker(
          expire.worker, expire.incarnation, expire.reason, expire.input_ended,
          expire.step, expire.attempt,
          [this, round = expire.round, server = expire.server,
           worker = expire.worker](absl::StatusOr<ShardCalls::Expired> answer) {
            events_.Push(
                ExpireAnswered{round, server, worker, std::move(answer)});
          });
}

void Chief::Do(const Replace& replace) {
  servers_.server(replace.server)
      .StartReplaceMember(
          replace.worker, replace.step, replace.attempt, replace.reason,
          [this, round = replace.round, server = replace.server](
              absl::StatusOr<ShardCalls::Replaced> answer) {
            events_.Push(ReplaceAnswered{round, server, std::move(answer)});
          });
}

void Chief::Do(const CloseTokens& close) {
  servers_.server(0).StartCloseTokens(
      [this, round = close.round](absl::Status status) {
        events_.Push(TokensClosed{round, std::move(status)});
      });
}

void Chief::Do(const BeginSnapshot& begin) {
  JoinCheckpoint();  // has ended: one at a time
  absl::StatusOr<std::thread> thread =
      NewThread([this, begin, manifest = MakeManifest(begin.step)] {
        WriteCheckpoint(begin, manifest);
      });
  if (thread.ok()) {
    checkpoint_thread_ = *std::move(thread);
  } else {
    events_.Push(SnapshotBegun{begin.step, thread.status()});
  }
}

void Chief::WriteCheckpoint(const BeginSnapshot& begin, Manifest manifest) {
  SpanTimer copy(&spans_,
                 {.kind = SpanKind::kCheckpointCopy, .step = begin.step});
  const absl::StatusOr<JobSnapshot> snapshot =
      servers_.BeginSnapshot(begin.step, begin.attempt);
  copy.End();
  events_.Push(SnapshotBegun{begin.step, snapshot.status()});
  if (!snapshot.ok()) return;
  const SpanTimer write(
      &spans_, {.kind = SpanKind::kCheckpointWrite, .step = begin.step});
  const absl::Status status = checkpoints_.Save(manifest, recovery_.map(),
                                                *snapshot, servers_.Access());
  servers_.EndSnapshot();  // also after a failure: frees the copies
  if (status.ok()) checkpoints_.Saved(begin.step);
  events_.Push(SnapshotDone{begin.step, status});
}

void Chief::JoinCheckpoint() {
  if (checkpoint_thread_.joinable()) checkpoint_thread_.join();
}

Manifest Chief::MakeManifest(int64_t step) const {
  Manifest manifest;
  manifest.job_name = job_.name;
  manifest.job_id = self_.job_id;
  manifest.global_step = step;
  manifest.seed = job_.seed;
  manifest.mode = job_.mode == SyncMode::kStrict ? "strict" : "compatible";
  manifest.num_workers = driver_.num_workers();
  manifest.settings = driver_.ManifestSettings();
  manifest.saved_at_unix_ms = absl::ToUnixMillis(absl::Now());
  return manifest;
}

void Chief::Do(const CheckSaved& check) {
  events_.Push(
      SavedChecked{check.step, checkpoints_.CheckOrSetAside(check.step)});
}

void Chief::Do(const LookForEnd&) {
  if (const auto step = checkpoints_.WholeFrom(job_.train_steps)) {
    events_.Push(EndFound{*step, checkpoints_.SavedAt(*step)});
  }
}

void Chief::Do(const OpenSettings& open) {
  settings_table_.Open(open.settings);
}

void Chief::Do(const CloseSettings& close) {
  settings_table_.Close(close.reason, close.over);
}

void Chief::Do(const Tuned& tuned) { settings_table_.Tune(tuned.replicas); }

void Chief::Do(const Say& say) {
  const auto level = say.level == Say::Level::kInfo      ? spdlog::level::info
                     : say.level == Say::Level::kWarning ? spdlog::level::warn
                                                         : spdlog::level::err;
  spdlog::log(level, "{}", say.text);
}

void Chief::Do(const SumUp&) {
  for (const std::string& line : SummaryOf(status_table_.Get(clock_.Now()))) {
    spdlog::info("{}", line);
  }
}

void Chief::Do(const JobReport& report) {
  if (const auto* reached = std::get_if<StepReached>(&report)) {
    SetLogStep(reached->step);
  }
  const auto* begun = std::get_if<TrainingBegun>(&report);
  if (begun != nullptr) {
    spdlog::info(
        "{} in {} on {}, epoch {}",
        CountText(std::ssize(recovery_.map().plan.variables), "variable"),
        CountText(std::ssize(recovery_.map().plan.parts), "part"),
        CountText(std::ssize(servers_.used()), "server"), servers_.epoch());
    SetLogStep(begun->step);
  }
  if (const auto* died = std::get_if<ProcessDied>(&report)) {
    RecordDeath(spans_, died->death.task, driver_.step());
  }
  if (recorder_ != nullptr) recorder_->Note(report, clock_.Now());
  Write(report, status_table_, clock_.Now());
  if (begun != nullptr) status_table_.PublishPlan(recovery_.map().plan);
}

void Chief::Do(const Finish& finish) { finished_ = finish; }

// Recovery rounds.

void Chief::Do(const Recover& recover) {
  events_.Push(RecoveryDone{recovery_.Run(recover)});
}

}  // namespace lockstep::chief
