#include "chief/chief.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/job_identity.h"
#include "chief/plan/placement.h"
#include "chief/traces/chief_spans.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/cluster_fit.h"
#include "common/job/strategy_checks.h"
#include "common/job/variable_settings.h"
#include "common/process/new_thread.h"
#include "common/status/status_codec.h"
#include "common/text/count_text.h"

namespace lockstep::chief {
namespace {

// A member that has missed this many heartbeats may be dead.
constexpr int kMissedHeartbeats = 4;

// The time that a round waits for a worker that sends nothing, and between two
// checks.
constexpr absl::Duration kGivenValuesWait = absl::Seconds(3);
constexpr absl::Duration kGivenValuesPoll = absl::Milliseconds(20);

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
      traces_(self_.job_id, job_, members_, spans_, clock_),
      servers_(servers, self),
      checkpoints_(job_.checkpoint,
                   [this](const std::string& text) { Notify(text); }),
      driver_(job_,
              {.num_servers = servers_.size(),
               .beginning = beginning,
               .has_evaluator = has_evaluator_},
              members_, clock.Now()) {
  service_ = std::make_unique<CoordinatorService>(
      CoordinatorService::Options{
          self_.job_id, job_, cluster.num_workers(), cluster.has_evaluator(),
          [this](const std::string& reason, bool hold) {
            RequestStop(reason, hold);
          },
          &given_values_,
          [this](const TaskId& member, v1::HeartbeatResponse& response) {
            traces_.FillHeartbeat(member, response);
          }},
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
  // For OnWorking(): during a round the queue of events is not read.
  MutexLock lock(stop_mutex_);
  RecordStop(stop, stop_);
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
  const absl::Status status =
      checkpoints_.Save(manifest, map_, *snapshot, servers_.Access());
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
    spdlog::info("{} in {} on {}, epoch {}",
                 CountText(std::ssize(map_.plan.variables), "variable"),
                 CountText(std::ssize(map_.plan.parts), "part"),
                 CountText(std::ssize(servers_.used()), "server"),
                 servers_.epoch());
    SetLogStep(begun->step);
  }
  if (const auto* died = std::get_if<ProcessDied>(&report)) {
    RecordDeath(spans_, died->death.task, driver_.step());
  }
  if (recorder_ != nullptr) recorder_->Note(report, clock_.Now());
  Write(report, status_table_, clock_.Now());
  if (begun != nullptr) status_table_.PublishPlan(map_.plan);
}

void Chief::Do(const Finish& finish) { finished_ = finish; }

// Recovery rounds.

void Chief::Do(const Recover& recover) {
  events_.Push(RecoveryDone{RunRound(recover)});
}

absl::StatusOr<RoundOutcome> Chief::RunRound(const Recover& recover) {
  if (plan_.parts.empty()) LOCKSTEP_RETURN_IF_ERROR(MakePlanOfAll());
  LOCKSTEP_ASSIGN_OR_RETURN(RecoveryRound::Outcome outcome,
                            round_.Run(plan_, recover.request));
  map_ = std::move(outcome.map);
  // Workers that register again need the plan of the mirrors that now sum.
  if (driver_.opened()) status_table_.PublishPlan(map_.plan);
  if (!outcome.plan.copies.empty()) Notify(TextOfCopies(outcome.plan));
  return RoundOutcome{std::move(outcome.plan),
                      outcome.step,
                      outcome.checkpoint_step,
                      servers_.epoch(),
                      std::move(outcome.servers),
                      checkpoints_.SavedAt(outcome.checkpoint_step)};
}

absl::Status Chief::MakePlanOfAll() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGradientType(status_table_.variables(), job_.gradient_wire_type));
  LOCKSTEP_RETURN_IF_ERROR(
      SettingsOf(job_, status_table_.variables()).status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      plan_, PlanOfJob(job_, status_table_.variables(), servers_.size()));
  return absl::OkStatus();
}

absl::Status Chief::OnWorking(const std::string& what) {
  JobActions actions;
  const absl::Status stop = driver_.OnWorking(what, clock_.Now(), actions);
  Carry(actions);
  if (!stop.ok()) return stop;
  MutexLock lock(stop_mutex_);
  return stop_.value_or(absl::OkStatus());
}

OnTransferred Chief::Watch(std::string what) {
  return WithProgress(std::move(what), clock_, [this](const std::string& text) {
    return OnWorking(text);
  });
}

void Chief::OnStartFrom(const RecoveryPlan& plan, bool first) {
  went_back_ =
      plan.action == RecoveryPlan::Action::kGoBack || members_.HasTakenOver();
  JobActions actions;
  const absl::Time until =
      driver_.OnStartFrom(plan, first, LatestStep().value_or(-1), actions);
  Carry(actions);
  absl::SleepFor(until - clock_.Now());  // none if InfinitePast()
}

absl::StatusOr<std::shared_ptr<SafetensorsReader>> Chief::AwaitGivenValues(
    const StateMap& map) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<SafetensorsReader> values,
                            given_values_.Take());
  if (values == nullptr && went_back_) {
    values = given_values_.TakeKept(map.plan.variables);
  }
  if (values != nullptr) return values;
  LOCKSTEP_RETURN_IF_ERROR(given_values_.Want(map.plan.variables));
  // A longer wait takes several rounds, so that the driver learns of deaths in
  // between.
  const absl::Time until = clock_.Now() + kGivenValuesWait;
  while (values == nullptr) {
    const std::string whom = given_values_.Progress();
    LOCKSTEP_RETURN_IF_ERROR(OnWorking(whom));
    if (clock_.Now() >= until && whom == given_values_.Progress()) {
      return absl::UnavailableError(absl::StrCat("they wait for ", whom));
    }
    absl::SleepFor(kGivenValuesPoll);
    LOCKSTEP_ASSIGN_OR_RETURN(values, given_values_.Take());
  }
  return values;
}

absl::Status Chief::WriteInitialValues(const StateMap& map) {
  if (HasGivenValues(map.plan.variables)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<SafetensorsReader> values,
                              AwaitGivenValues(map));
    const auto watch = Watch("the values that a worker gave to be written");
    LOCKSTEP_RETURN_IF_ERROR(
        servers_.WriteInitialValues(*values, map, watch).status());
  }
  const std::string& file = job_.checkpoint.initial_values;
  if (file.empty()) return absl::OkStatus();
  const auto watch =
      Watch(absl::StrCat("the values of ", file, " to be written"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found,
                            servers_.WriteInitialValuesOf(file, map, watch));
  spdlog::info("{}", found);
  status_table_.Notify(found, clock_.Now());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RecoverySource::Restored>> Chief::Restore(
    const StateMap& map) {
  const std::optional<CheckpointReader> checkpoint = checkpoints_.TakeNewest();
  const bool done = checkpoint.has_value() &&
                    checkpoint->manifest().global_step >= job_.train_steps;
  // A running job can wait for its volume; a job that starts would only notice
  // at its first checkpoint.
  if (!driver_.opened() && !done && !checkpoints_.none()) {
    LOCKSTEP_RETURN_IF_ERROR(checkpoints_.CheckWritable());
  }
  if (!checkpoint.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(WriteInitialValues(map));
    return std::nullopt;
  }
  JobActions actions;
  driver_.OnRestore(checkpoint->manifest().settings, actions);
  Carry(actions);
  Restored restored{checkpoint->manifest().global_step, {}};
  absl::StatusOr<std::vector<float>> scalars =
      servers_.Restore(*checkpoint, map,
                       Watch(absl::StrCat("the checkpoint of step ",
                                          restored.step, " to be restored")));
  if (!scalars.ok()) {
    return checkpoints_.RestoreFailed(restored.step, scalars.status());
  }
  restored.scalars = *std::move(scalars);
  Write(CheckpointSaved{restored.step,
                        absl::FromUnixMillis(
                            checkpoint->manifest().saved_at_unix_ms)},
        status_table_, clock_.Now());
  const std::string resumed =
      absl::StrCat("resumed from the checkpoint of step ", restored.step,
                   " in ", checkpoints_.directory());
  spdlog::info("{}", resumed);
  status_table_.Notify(resumed, clock_.Now());
  return restored;
}

}  // namespace lockstep::chief
