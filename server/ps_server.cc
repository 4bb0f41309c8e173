#include "server/ps_server.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/process/process.h"
#include "server/calls/receive_memory.h"
#include "server/state/file/state_file.h"
#include "server/step/longest_waits.h"

namespace lockstep::server {
namespace {

// An entry in the queue of returned parts that ends the thread which reads it.
constexpr int kNoPart = -1;
constexpr absl::Duration kTick = absl::Milliseconds(100);
// A server which must end waits for the chief's checkpoint until the chief has
// been silent for this time.
constexpr absl::Duration kStopGrace = absl::Seconds(15);
// Meanwhile heartbeats are this far apart at most, whatever the job says.
constexpr absl::Duration kStopBeat = absl::Seconds(1);
// It asks again this often: a chief that was started again has not heard it.
constexpr absl::Duration kAskAgain = absl::Seconds(5);
// The time that a server still serves a job which goes on without it: the chief
// takes its worker out meanwhile, and no step has to wait for this server.
constexpr absl::Duration kLeaveGrace = absl::Seconds(1);

absl::Status Gone() { return absl::UnavailableError("this ps has ended"); }

}  // namespace

absl::StatusOr<std::unique_ptr<PsServer>> PsServer::Start(
    const Cluster& cluster, const Options& options, const Clock& clock) {
  LOCKSTEP_RETURN_IF_ERROR(StateFile::CheckDirectory(options.state_dir));
  ChiefClient::Options chief;
  LOCKSTEP_ASSIGN_OR_RETURN(chief.address, cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(chief.own_address, cluster.Address(cluster.self()));
  chief.task = cluster.self();
  chief.expected_job = options.expected_job;
  chief.chief_wait = options.chief_wait;
  chief.clock = &clock;
  chief.spans = &SpanRecorder::Of(SpanRecorder::Role::kServer);
  const std::string address = chief.own_address;
  auto ps = std::unique_ptr<PsServer>(new PsServer(
      options, cluster, DrawIncarnation(), std::move(chief), clock));
  // A gradient may have any size; SetMemory() bounds the memory of all messages
  // together.
  GrpcServer::Options limits;
  limits.largest_message = -1;
  std::vector<grpc::Service*> services = {
      &ps->parameters_, &ps->sync_, &ps->control_, &ps->streams_, &ps->mirror_};
  services.insert(services.end(), options.more_services.begin(),
                  options.more_services.end());
  LOCKSTEP_ASSIGN_OR_RETURN(ps->server_,
                            GrpcServer::Start(address, services, limits));
  ShardPulse::Options pulse;
  pulse.touch = [&host = ps->host_] { host.TouchLocks(); };
  pulse.tell = [&server = *ps->server_](bool lives) {
    server.SetServing(lives);
  };
  ps->pulse_ = std::make_unique<ShardPulse>(pulse, clock);
  MeanFetcher::Options fetches{
      .self = cluster.self(),
      .incarnation = ps->incarnation_,
      .shared_memory = options.shared_memory && options.shared_means};
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    fetches.servers.push_back(cluster.Address(task).value_or(""));
  }
  fetches.on_answers = [server = ps.get()](Shard& shard, ShardAnswers answers) {
    server->replies_.Send(shard,
                          server->commands_.Settle(shard, std::move(answers)));
  };
  ps->fetcher_ = std::make_unique<MeanFetcher>(fetches, ps->host_);
  return ps;
}

PsServer::PsServer(const Options& options, const Cluster& cluster,
                   uint64_t incarnation, ChiefClient::Options chief,
                   const Clock& clock)
    : clock_(clock),
      incarnation_(incarnation),
      index_(cluster.self().index),
      own_state_dir_(options.own_state_dir ? options.state_dir : ""),
      host_({cluster.self().index, incarnation, options.state_dir,
             options.shared_memory, cluster.chief(),
             static_cast<int>(cluster.Tasks(TaskType::kPs).size())}),
      commands_(host_),
      replies_(host_, clock),
      parameters_(host_, commands_, replies_),
      sync_(host_, replies_, clock),
      chief_(std::move(chief)),
      control_(host_, commands_, replies_, clock),
      streams_(StreamedMethods(parameters_, sync_),
               [this](uint64_t stream) { replies_.StreamEnded(stream); }),
      mirror_(host_, clock),
      ticks_([this] { Tick(); }),
      returns_([this] { UpdateReturnedParts(); }) {
  // All of these are set before Start() serves the first call.
  if (options.moved) parameters_.set_moved(options.moved);
  replies_.set_on_means_changed([this] {
    mirror_.AnswerReady();
    host_.attempts().Push(0);
  });
  control_.set_created([this](const JobConfig& job,
                              const std::vector<VariableSpec>& variables,
                              const std::vector<PartSpec>& parts) {
    chief_.KnowModel(variables);
    if (server_ != nullptr) server_->SetMemory(ReceiveMemory(job, parts));
  });
}

PsServer::~PsServer() {
  // Pulse and fetcher first: they call the host and the server from their
  // threads.
  pulse_.reset();
  fetcher_.reset();
  host_.returned_parts().Push(kNoPart);
  returns_.join();
  // gRPC waits for all calls, so the waiting ones must be ended; Close()
  // refuses those that still arrive.
  host_.Close(Gone());
  host_.StopCreating();
  closing_ = true;
  EndAllCalls();
  if (server_ != nullptr) server_->Shutdown(absl::Milliseconds(200));
  // Only now: until gRPC has no calls, a tick ends those that were filed late.
  end_ticks_ = true;
  ticks_.join();
  // The work of a call that has ended may still run. It reports to the chief's
  // client and to the gRPC server that a shard was created.
  control_.JoinWork();
  server_.reset();
}

void PsServer::EndAllCalls() {
  replies_.EndAll(Gone());
  control_.EndAll(Gone());
  mirror_.EndAll(Gone());
}

void PsServer::Tick() {
  while (!end_ticks_) {
    absl::SleepFor(kLookForOldCalls);
    // A call that was admitted before Close() may be filed after the destructor
    // has ended all calls.
    if (closing_) EndAllCalls();
    replies_.TakeBack(clock_.Now());
    replies_.AnswerOld(clock_.Now());
    control_.AnswerOld(clock_.Now());
    mirror_.AnswerOld(clock_.Now());
  }
}

void PsServer::UpdateReturnedParts() {
  while (true) {
    const std::optional<int> part =
        host_.returned_parts().PopFor(absl::Hours(1));
    if (!part.has_value()) continue;
    if (*part == kNoPart) return;
    if (auto shard = host_.shard(); shard.ok()) {
      ShardAnswers answers = (*shard)->engine().PartReturned(*part);
      replies_.Send(**shard, commands_.Settle(**shard, std::move(answers)));
    }
  }
}

absl::Status PsServer::Run() {
  while (true) {
    if (absl::Status joined = Join(); !joined.ok()) {
      was_refused_ = !stop_ && member_ != Member::kUnknown;
      return joined;
    }
    while (!stop_ && !chief_.WaitForEnd(absl::Hours(1))) {
    }
    if (stop_ || !chief_.lease_lost()) break;
    spdlog::warn("taken for dead ({}); joining again",
                 std::string(chief_.end().message()));
  }
  if (stop_) AwaitEnd();
  const absl::Status end =
      chief_.ended() ? chief_.end() : absl::CancelledError("asked to stop");
  if (!chief_.state_is_spare()) {
    spdlog::warn("leaves its state as it is, for the next start of this task");
  } else if (absl::Status removed = host_.RemoveState(); !removed.ok()) {
    spdlog::warn("the state file stays: {}", std::string(removed.message()));
  }
  if (!own_state_dir_.empty()) StateFile::RemoveIfEmpty(own_state_dir_);
  chief_.Leave(end.ok() ? LeaveCause::kDone : LeaveCause::kStopped,
               end.ok() ? "done" : std::string(end.message()));
  return end;
}

void PsServer::AwaitEnd() {
  if (chief_.ended()) return;
  if (may_leave()) {
    // The worker may have left because the job has ended: then the answer says
    // so, and whether the state is saved.
    chief_.BeatNow();
    const absl::Time deadline = clock_.Now() + kLeaveGrace;
    while (!chief_.ended() && clock_.Now() < deadline) absl::SleepFor(kTick);
  } else if (asked_) {
    AwaitCheckpoint();
  }
}

void PsServer::AwaitCheckpoint() {
  spdlog::info("waits for the chief to end the job, until it is silent for {}",
               absl::FormatDuration(kStopGrace));
  absl::Time asked = clock_.Now();
  while (!chief_.ended()) {
    const absl::Time now = clock_.Now();
    const absl::Duration silence = now - chief_.last_answer();
    if (silence >= kStopGrace) return;
    if (silence >= kStopBeat) {
      chief_.BeatNow();
    } else if (now - asked >= kAskAgain) {
      chief_.AskToStop("this server must end");
      asked = now;
    }
    absl::SleepFor(kTick);
  }
}

MetricFamilies PsServer::Metrics() const {
  MetricFamilies metrics = replies_.counts().Metrics();
  absl::StatusOr<std::shared_ptr<Shard>> shard = host_.shard();
  if (!shard.ok()) return metrics;
  const int parts = (*shard)->state().num_parts();
  double bytes = 0;
  for (int part = 0; part < parts; ++part) {
    bytes += static_cast<double>((*shard)->PartSize(part));
  }
  metrics.Gauge("lockstep_server_step", "Step that is committed here.",
                static_cast<double>((*shard)->engine().step()));
  metrics.Gauge("lockstep_server_parts", "Parts of variables held.", parts);
  metrics.Gauge("lockstep_server_value_bytes",
                "Bytes of the values of those, without slots.", bytes);
  return metrics;
}

absl::Status PsServer::Join() {
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Registration membership,
                            chief_.Register());
  host_.SetJobId(membership.job_id);
  // Mirror 0 commits the steps.
  const bool may_leave = membership.job.has_elastic_mirrors() && index_ > 0;
  member_ = may_leave ? Member::kMayLeave : Member::kNeeded;
  return absl::OkStatus();
}

void PsServer::RequestStop(const std::string& reason) {
  if (!may_leave()) asked_ = chief_.AskToStop(reason);
  EndRun();
}

void PsServer::FollowWorker(const std::string& reason) {
  if (member_ == Member::kNeeded) asked_ = chief_.AskToStop(reason);
  EndRun();
}

void PsServer::EndRun() {
  stop_ = true;
  chief_.Stop();
}

}  // namespace lockstep::server
