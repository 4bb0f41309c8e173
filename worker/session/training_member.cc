#include "worker/session/training_member.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/call_limits.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/field_checks.h"
#include "common/job/variable_settings.h"
#include "common/metrics/durations.h"
#include "common/wire/status_detail.h"
#include "worker/blocks/block_source.h"
#include "worker/blocks/replica_turns.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/loop_end.h"
#include "worker/loop/loop_options.h"
#include "worker/loop/training_loop.h"

namespace lockstep::worker {
namespace {

// How long a worker that is asked to leave an elastic job may take to end its
// pass; less than a service manager waits.
constexpr absl::Duration kLeaveGrace = absl::Seconds(10);

bool FoundNoRoom(const absl::Status& status) {
  return CauseOf(status) == FailureCause::kNoRoomForRows;
}

std::string ReasonToLeave(const absl::Status& status) {
  switch (LeaveCauseOf(status, FoundNoRoom(status))) {
    case LeaveCause::kDone:
      return "done";
    case LeaveCause::kEndOfInput:
      return "end of input";
    case LeaveCause::kStopped:
      return std::string(status.message());
    case LeaveCause::kNoRoom:
    case LeaveCause::kCannotTakePart:
      break;
  }
  return absl::StrCat("failed: ", status.message());
}

void ObservePhases(const PhaseTimes& times) {
  for (const Phase phase :
       {Phase::kWait, Phase::kPull, Phase::kCompute, Phase::kPush}) {
    WorkerPhaseSeconds(PhaseName(phase))
        .Observe(absl::ToDoubleSeconds(times[static_cast<size_t>(phase)]));
  }
}

// An error of the workload, which must not be taken for the refusal of a
// server: see Judge().
absl::Status FaultOf(const absl::Status& workload) {
  if (!absl::IsFailedPrecondition(workload)) return workload;
  return absl::InvalidArgumentError(workload.message());
}

using InitialValue = absl::StatusOr<absl::Span<const std::byte>>;

constexpr int kMaxThreads = 16;

// The memory of all gradients, without that of variables that are not trained.
GradientClipper::Gradients TrainedGradients(
    const ParameterMemory& memory, const std::vector<VariableSpec>& variables,
    const std::vector<VariableSettings>& settings) {
  GradientClipper::Gradients spans;
  for (size_t v = 0; v < variables.size(); ++v) {
    spans.push_back(memory.gradient(v));
    if (variables[v].buffer || !settings[v].trained) spans.back() = {};
  }
  return spans;
}

// The source of passes of several batches of `source`; null if its own passes
// are those of the worker. Shared work has one replica a worker.
std::unique_ptr<GradientSource> SeriesOf(
    const Workload& workload, const JobConfig& job, GradientSource& source,
    const std::vector<VariableSpec>& variables, GradientClipper& clipper,
    ParameterMemory& memory) {
  if (job.shares_work()) {
    return std::make_unique<BlockSource>(
        source, variables, job.micro_batches_per_step, clipper, memory);
  }
  if (workload.turns() == 1) return nullptr;
  return std::make_unique<ReplicaTurns>(source, variables, workload.turns(),
                                        clipper, memory);
}

// An example of the model kind skip_gram is a word.
void LogSpeed(int64_t examples, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  spdlog::info("{} examples in {:.1f} s, {:.0f} a second", examples, seconds,
               static_cast<double>(examples) / std::max(seconds, 1e-3));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingMember>> TrainingMember::Make(
    const Cluster& cluster, const Options& options, Workload& workload,
    const Clock& clock) {
  LOCKSTEP_RETURN_IF_ERROR(cluster.ValidateForParameterServers());
  // The flags' limits, for programs that set no flags.
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("pollers", options.pollers, 0, kMaxThreads));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("connections", options.connections, 0, kMaxThreads));
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  ChiefClient::Options chief;
  LOCKSTEP_ASSIGN_OR_RETURN(chief.address, cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(chief.own_address, cluster.Address(cluster.self()));
  chief.task = cluster.self();
  chief.expected_job = options.expected_job;
  chief.gpus = options.gpus;
  chief.chief_wait = options.chief_wait;
  chief.clock = &clock;
  return std::unique_ptr<TrainingMember>(new TrainingMember(
      cluster, std::move(servers), std::move(chief), options, workload, clock));
}

TrainingMember::TrainingMember(const Cluster& cluster,
                               std::vector<std::string> servers,
                               ChiefClient::Options chief,
                               const Options& options, Workload& workload,
                               const Clock& clock)
    : task_(cluster.self()),
      servers_(std::move(servers)),
      shared_memory_(options.shared_memory),
      pollers_(options.pollers),
      connections_(options.connections),
      workload_(workload),
      clock_(clock),
      meter_(clock, &SpanRecorder::Of(SpanRecorder::Role::kWorker),
             ObservePhases),
      chief_([&] {
        chief.progress = [this] { return meter_.Get(); };
        chief.spans = &SpanRecorder::Of(SpanRecorder::Role::kWorker);
        chief.on_leave = [this] {
          Leave(StoppedStatus("an operator takes this worker out of the job",
                              /*hold=*/true));
        };
        return std::move(chief);
      }()) {}

void TrainingMember::SetClient(ParameterClient* client) {
  MutexLock lock(mutex_);
  client_ = client;
  changed_.SignalAll();
  // For a stop that came before there was a client.
  if (client_ != nullptr && stop_.has_value()) client_->Cancel();
}

void TrainingMember::OnEnd(ParameterClient& client) {
  if (workload_.wants_last_values() && chief_.end().ok()) {
    MutexLock lock(mutex_);
    const absl::Time deadline = clock_.Now() + kLastPulls;
    while (client_ != nullptr && clock_.Now() < deadline) {
      changed_.WaitFor(mutex_,
                       absl::ToChronoNanoseconds(deadline - clock_.Now()));
    }
  }
  client.Cancel();
  workload_.Cancel();
}

TrainingMember::~TrainingMember() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.SignalAll();
  }
  if (patience_.joinable()) patience_.join();
}

void TrainingMember::RequestStop(const std::string& reason) {
  Stop(StoppedStatus(reason, /*hold=*/false));
}

void TrainingMember::Stop(const absl::Status& why) {
  bool has_pass = false;
  {
    MutexLock lock(mutex_);
    // An elastic job goes on without this worker, so the pass at hand may end.
    // A second request stops at once.
    has_pass = elastic_ && client_ != nullptr && !leave_.has_value();
  }
  if (has_pass) {
    Leave(why);
  } else {
    StopNow(why);
  }
}

void TrainingMember::Fail(const std::string& reason) {
  StopNow(absl::UnknownError(reason));
}

void TrainingMember::OnMirrorEnded(const absl::Status& why) {
  if (absl::IsCancelled(why)) {
    // With IsHeld(): the mirror may hear first that an operator has stopped the
    // job for good.
    Stop(why);
  } else if (absl::IsUnavailable(why)) {
    // The chief did not let the mirror in again in time. A restart may help.
    StopNow(why);
  } else {
    Fail(std::string(why.message()));
  }
}

void TrainingMember::Leave(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (leave_.has_value() || ended_) return;
  leave_ = why;
  leaving_ = true;
  spdlog::info("leaves after this pass: {}", std::string(why.message()));
  patience_ = std::thread([this, why] {
    const absl::Time deadline = clock_.Now() + kLeaveGrace;
    {
      MutexLock waiting(mutex_);
      while (!ended_ && clock_.Now() < deadline) {
        changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(kLeaveGrace));
      }
      if (ended_) return;
    }
    StopNow(why);
  });
}

void TrainingMember::StopNow(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    // The first reason is kept: a program that has called Fail() also ends,
    // which stops this worker a second time.
    if (!stop_.has_value()) stop_ = why;
  }
  // Only now: the loop, which this wakes up, looks for the reason.
  chief_.Stop();
  MutexLock lock(mutex_);
  if (client_ != nullptr) client_->Cancel();
  workload_.Cancel();
}

absl::Status TrainingMember::Run() {
  while (true) {
    const absl::Status status = RunOnce();
    if (!chief_.lease_lost() && !refused_) return status;
    // The status is OK if a server has closed its tokens, as it does when the
    // job goes back to an earlier step.
    if (status.ok()) {
      spdlog::warn("the job goes on from another step; joining again");
    } else {
      spdlog::warn("the membership has ended ({}); joining again",
                   std::string(status.message()));
    }
  }
}

absl::Status TrainingMember::RunOnce() {
  refused_ = false;
  stays_member_ = false;
  // First: a report of the incarnation before must not have the counts of the
  // next one.
  chief_.JoinHeartbeats();
  if (meter_.Get().passes > 0) refused_since_ = absl::InfiniteFuture();
  meter_.BeginAnew();
  const absl::StatusOr<ChiefClient::Registration> registered =
      chief_.Register();
  {
    MutexLock lock(mutex_);
    // The reason of whatever made Register() return, which does not know it.
    if (!registered.ok() && stop_.has_value()) return *stop_;
    LOCKSTEP_RETURN_IF_ERROR(registered.status());
    elastic_ = registered->job.elastic_workers;
  }
  const ChiefClient::Registration& membership = *registered;
  max_wait_ = membership.job.max_wait;
  const absl::Status status = Judge(Train(membership), membership.job);
  // kUnavailable means that this process's device is lost. Such a worker does
  // not leave: the process ends, and takes its place in the job again once it
  // has been restarted.
  stays_member_ =
      !chief_.lease_lost() && !refused_ && absl::IsUnavailable(status);
  if (!chief_.lease_lost() && !refused_ && !stays_member_) {
    meter_.Begin("leaves", Phase::kOther);
    chief_.Leave(LeaveCauseOf(status, FoundNoRoom(status)),
                 ReasonToLeave(status));
  }
  input_ended_ = absl::IsOutOfRange(status);
  return input_ended_ ? absl::OkStatus() : status;
}

ParameterClient::Options TrainingMember::ClientOptions(
    const ChiefClient::Registration& membership, bool mirrored,
    const std::vector<VariableSettings>& settings) const {
  ParameterClient::Options options;
  options.servers = servers_;
  options.self = {membership.job_id, task_, membership.incarnation};
  options.max_part_bytes = membership.job.max_part_bytes;
  options.gradient_type = membership.job.gradient_wire_type;
  options.pollers = pollers_;
  options.connections = connections_;
  if (mirrored) options.mirror = task_.index;
  options.mean_is_limited = membership.job.clipping.limits_mean();
  for (const VariableSettings& each : settings) {
    // Accumulators of compatible mode need a gradient of each variable.
    options.untrained.push_back(membership.job.mode == SyncMode::kStrict &&
                                !each.trained);
  }
  return options;
}

absl::Status TrainingMember::Train(
    const ChiefClient::Registration& membership) {
  const JobConfig& job = membership.job;
  meter_.Begin("reads its data", Phase::kOther,
               [this] { return workload_.Beginning(); });
  LOCKSTEP_RETURN_IF_ERROR(FaultOf(workload_.Begin(membership)));
  LOCKSTEP_RETURN_IF_ERROR(chief_.DescribeModel(
      workload_.variables(), workload_.examples(), workload_.num_examples()));
  meter_.Begin("waits for the variables", Phase::kWait);
  int64_t step = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(
      Plan plan, chief_.WaitForPlan(static_cast<int>(servers_.size()), step,
                                    [this](size_t v) -> InitialValue {
                                      auto value = workload_.initial_value(v);
                                      if (!value.ok())
                                        return FaultOf(value.status());
                                      return value;
                                    }));
  LOCKSTEP_ASSIGN_OR_RETURN(
      ParameterMemory made,
      ParameterMemory::Make(plan.variables,
                            shared_memory_
                                ? ParameterMemory::Gradients::kShared
                                : ParameterMemory::Gradients::kPrivate));
  const auto memory = std::make_shared<ParameterMemory>(std::move(made));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<VariableSettings> settings,
                            SettingsOf(job, plan.variables));
  ParameterClient client(ClientOptions(membership, plan.mirrored, settings),
                         plan, *memory);
  const auto source = workload_.MakeSource(memory);
  LOCKSTEP_RETURN_IF_ERROR(FaultOf(source.status()));
  const ClippingConfig clipping =
      workload_.clips() ? ClippingConfig{} : job.clipping;
  LOCKSTEP_ASSIGN_OR_RETURN(const DType clipped,
                            ClippedType(clipping, plan.variables));
  GradientClipper clipper(clipping, clipped, [&] {
    return TrainedGradients(*memory, plan.variables, settings);
  });
  const std::unique_ptr<GradientSource> series =
      SeriesOf(workload_, job, **source, plan.variables, clipper, *memory);
  // Before SetClient(): a job that ends in between must cancel the client, too.
  chief_.set_on_end([this, &client] { OnEnd(client); });
  SetClient(&client);
  const int64_t examples_before = meter_.Get().examples;
  const absl::Time began = clock_.Now();
  TrainingLoop::Options options = LoopOptionsOf(job, task_.index, step);
  options.leaving = &leaving_;
  options.clipper = series == nullptr ? &clipper : nullptr;
  options.pulls_last_values = workload_.wants_last_values();
  TrainingLoop loop(options, client, series == nullptr ? **source : *series,
                    meter_);
  const absl::Status status = loop.Run();
  if (loop.last_values().has_value()) {
    workload_.HasLastValues(*loop.last_values());
  }
  SetClient(nullptr);
  chief_.set_on_end(nullptr);
  LogSpeed(meter_.Get().examples - examples_before, clock_.Now() - began);
  return status;
}

absl::Status TrainingMember::Judge(const absl::Status& loop,
                                   const JobConfig& job) {
  {
    MutexLock lock(mutex_);
    if (stop_.has_value()) return *stop_;
    if (leave_.has_value() && absl::IsCancelled(loop) && !chief_.ended()) {
      return *leave_;
    }
  }
  if (absl::IsOutOfRange(loop)) return loop;
  const bool no_room = FoundNoRoom(loop);
  if (MustAwaitEnd(loop, no_room)) {
    meter_.Begin("waits for the end of the job", Phase::kWait);
    // The next heartbeat leaves at once: it brings the chief's reason.
    chief_.OnRefusedByServer(NewestIncarnationOf(loop));
    const absl::Duration wait = EndWait(loop, no_room, job);
    do {
      if (chief_.WaitForEnd(wait)) return chief_.end();
      MutexLock lock(mutex_);
      if (stop_.has_value()) return *stop_;
    } while (MustWaitOn(loop, no_room, chief_.job_is_training()));
    refused_ = !no_room && !absl::IsCancelled(loop) && MayJoinAgain();
  }
  return loop;
}

bool TrainingMember::MayJoinAgain() {
  const absl::Time now = clock_.Now();
  // RunOnce() sets an infinite time after an incarnation with a pass.
  refused_since_ = std::min(refused_since_, now);
  return meter_.Get().passes > 0 || now - refused_since_ < max_wait_;
}

}  // namespace lockstep::worker
