#include "server/mirror/mean_fetcher.h"

#include <utility>

#include "common/base/call_limits.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/memory/shared_memory.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/mirror.pb.h"
#include "server/mirror/means_codec.h"

namespace lockstep::server {
namespace {

constexpr char kFetchMeans[] = "/lockstep.v1.MirrorService/FetchMeans";
constexpr absl::Duration kCallDeadline = absl::Seconds(10);
// All calls to a server share a connection, and end at about the same time: as
// many as MakeFetches() makes, at 8 MiB/s or more.
constexpr double kSecondsPerByte = 2.0 * kCallsAtOnce / (8 << 20);
// Commits and attempts wake the thread; this look without one is a precaution
// that costs nothing.
constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

}  // namespace

struct MeanFetcher::Call {
  std::shared_ptr<Shard> shard;
  Fetch fetch;
  StepAttempt of;
  bool given_up = false;  // the shard was discarded
  grpc::ClientContext context{};
  grpc::ByteBuffer request{};
  grpc::ByteBuffer response{};
};

MeanFetcher::MeanFetcher(const Options& options, ShardHost& host)
    : options_(options),
      host_(host),
      pid_space_(options.shared_memory ? OwnPidSpace() : ""),
      mapped_(options.servers.size()),
      stubs_(options.servers.size()),
      thread_([this] { Run(); }) {}

MeanFetcher::~MeanFetcher() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.SignalAll();
    for (const auto& [call, owned] : in_flight_) call->context.TryCancel();
  }
  host_.attempts().Push(0);  // wakes the thread
  thread_.join();
  // After the thread, which starts no further calls.
  MutexLock lock(mutex_);
  while (!in_flight_.empty()) idle_.Wait(mutex_);
}

void MeanFetcher::Run() {
  while (true) {
    host_.attempts().PopFor(kLookEvery);
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      // A server that is away must not be called without a pause.
      if (std::exchange(failed_, false)) {
        changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(kRetryPause));
      }
      if (ended_) return;
    }
    Look();
  }
}

void MeanFetcher::Look() {
  const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.shard();
  CancelOthers(shard.ok() ? shard->get() : nullptr);
  if (!shard.ok() || !(*shard)->active()) return;
  const Engine::MeansWanted wanted = (*shard)->engine().means_wanted();
  MutexLock lock(mutex_);
  if (ended_) return;
  const std::vector<int> parts = requests_.Look(*shard, wanted);
  const auto target = static_cast<size_t>((*shard)->job().max_part_bytes);
  for (const Fetch& fetch :
       MakeFetches((*shard)->parts(), parts, target,
                   [this](int server) { return mapped_.Maps(server); })) {
    Start(*shard, fetch);
  }
}

void MeanFetcher::CancelOthers(const Shard* current) {
  MutexLock lock(mutex_);
  for (const auto& [call, owned] : in_flight_) {
    if (call->shard.get() == current) continue;
    call->given_up = true;
    call->context.TryCancel();
  }
}

void MeanFetcher::Start(const std::shared_ptr<Shard>& shard,
                        const Fetch& fetch) {
  // Until the call fails: Look() must not request these parts again.
  requests_.Called(fetch.first_part, fetch.num_parts);
  auto owned = std::make_unique<Call>();
  Call* call = owned.get();
  call->shard = shard;
  call->fetch = fetch;
  call->of = requests_.of();
  v1::FetchMeansRequest request;
  *request.mutable_identity() =
      ToProto(Sender{host_.job_id(), options_.self, options_.incarnation});
  request.set_step(call->of.step);
  request.set_attempt(call->of.attempt);
  request.mutable_parts()->set_first_part(fetch.first_part);
  request.mutable_parts()->set_num_parts(fetch.num_parts);
  request.set_server(fetch.server);
  if (mapped_.MayMap(fetch.server)) request.set_pid_space(pid_space_);
  call->request = EncodeMessage(request);
  call->context.set_deadline(DeadlineIn(
      kCallDeadline +
      absl::Seconds(kSecondsPerByte * BytesOf(shard->parts(), fetch))));
  // Before the call starts: its callback may run at once, in another thread.
  in_flight_.emplace(call, std::move(owned));
  PassFaultPoint(FaultPoint::kPsFetchSend);
  Stub(fetch.server)
      .UnaryCall(&call->context, kFetchMeans, {}, &call->request,
                 &call->response, [this, call](const grpc::Status& status) {
                   Done(call, FromGrpcStatus(status));
                 });
}

grpc::GenericStub& MeanFetcher::Stub(int server) {
  std::unique_ptr<grpc::GenericStub>& stub = stubs_[server];
  if (stub == nullptr) {
    stub = std::make_unique<grpc::GenericStub>(
        MakeChannel(options_.servers[server]));
  }
  return *stub;
}

absl::StatusOr<std::vector<PartGradient>> MeanFetcher::Read(const Call& call) {
  const Fetch& fetch = call.fetch;
  LOCKSTEP_ASSIGN_OR_RETURN(auto means,
                            DecodeMeans(call.response, call.shard->parts(),
                                        fetch.first_part, fetch.num_parts));
  if (auto* sent = std::get_if<std::vector<PartGradient>>(&means)) {
    return std::move(*sent);
  }
  return mapped_.Read(fetch.server, std::get<SharedMeans>(means));
}

absl::Status MeanFetcher::Take(const Call& call) {
  const Fetch& fetch = call.fetch;
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<PartGradient> means, Read(call));
  LOCKSTEP_ASSIGN_OR_RETURN(
      ShardAnswers answers,
      call.shard->engine().AddMeans(call.of.step, call.of.attempt,
                                    fetch.first_part, std::move(means)));
  options_.on_answers(*call.shard, std::move(answers));
  return absl::OkStatus();
}

void MeanFetcher::Done(Call* call, const absl::Status& status) {
  PassFaultPoint(FaultPoint::kPsFetchAnswered);
  const absl::Status taken = status.ok() ? Take(*call) : status;
  const Fetch fetch = call->fetch;
  if (absl::IsUnavailable(status)) mapped_.OnServerGone(fetch.server);
  // Declared before the lock, so released after it: this may be the last
  // reference, and unmapping a shard takes long.
  std::shared_ptr<Shard> shard;
  MutexLock lock(mutex_);
  shard = std::move(call->shard);
  if (MeanRequests::MustRepeat(taken) && !ended_ && !call->given_up) {
    if (!absl::IsUnavailable(taken) && !absl::IsDeadlineExceeded(taken)) {
      spdlog::warn("the means of ps {}: {}", fetch.server,
                   std::string(taken.message()));
    }
    if (requests_.Failed(call->of, fetch.first_part, fetch.num_parts)) {
      failed_ = true;
      host_.attempts().Push(0);  // wakes the thread, to request them again
    }
  }
  // A call must be destroyed before its channel, and the destructor, which
  // destroys the channels, waits for this.
  in_flight_.erase(call);
  idle_.SignalAll();
}

}  // namespace lockstep::server
