#include "worker/client/parameter_client.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/stream_copy.h"
#include "common/wire/shared_memory_codec.h"
#include "worker/client/call_client.h"
#include "worker/client/row_codec.h"

namespace lockstep {
namespace {

constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";
constexpr char kOpen[] = "/lockstep.v1.ParameterService/OpenSharedMemory";

constexpr int kWindow = 4;
// Where bytes do not travel, a call is dear and its size is not: few calls, but
// enough for all threads of a server.
constexpr size_t kSharedCalls = 16;
constexpr size_t kLargestSharedChunk = size_t{4} << 20;
constexpr absl::Duration kCallDeadline = absl::Seconds(10);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kReportEvery = absl::Seconds(5);

void CountOutcomes(const v1::PushResult& result, PushCounts& counts) {
  for (int outcome : result.outcomes()) {
    switch (outcome) {
      case v1::ACCEPTED:
        ++counts.accepted;
        break;
      case v1::STALE:
        ++counts.stale;
        break;
      case v1::DUPLICATE:
        ++counts.duplicate;
        break;
      default:
        ++counts.superseded;
    }
  }
}

std::vector<std::unique_ptr<ServerChannel>> Connect(
    CallPoller& poller, const ParameterClient::Options& options) {
  // Two let both of a server's threads copy at the same time; with more servers
  // there are enough without.
  const int usual = options.servers.size() == 1 ? 2 : 1;
  const int connections = options.connections > 0 ? options.connections : usual;
  std::vector<std::unique_ptr<ServerChannel>> channels;
  for (const std::string& address : options.servers) {
    channels.push_back(
        std::make_unique<ServerChannel>(poller, address, connections));
  }
  return channels;
}

}  // namespace

struct ParameterClient::ActivePush {
  PassId pass;
  int64_t attempt = 0;
  bool rest_sent = false;
  v1::PushHeader header;

  Mutex mutex;
  PushCounts counts ABSL_GUARDED_BY(mutex);
  std::vector<std::set<size_t>> through ABSL_GUARDED_BY(mutex);  // by server
  std::unique_ptr<ChunkTransfer> transfer;

  struct StartAdded final : CallPoller::Event {
    explicit StartAdded(ActivePush& of) : push(of) {}
    void Happened(bool /*ok*/) override { push.transfer->StartAdded(); }
    ActivePush& push;
  } start_added{*this};
};

ParameterClient::ParameterClient(const Options& options, const Plan& plan,
                                 ParameterMemory& memory)
    : options_(options),
      plan_(plan),
      memory_(memory),
      chunks_(MakeChunks(plan, static_cast<int>(options.servers.size()),
                         options.max_part_bytes)),
      sharing_(options.servers.size()),
      ready_(chunks_),
      poller_(options.pollers),
      channels_(Connect(poller_, options)),
      sync_(*channels_[0], options.self) {
  for (const auto& chunks : chunks_) {
    held_.emplace_back(chunks.size());
    rounded_.emplace_back(chunks.size());
    routed_.emplace_back(chunks.size());
  }
}

ParameterClient::~ParameterClient() {
  Cancel();
  DropPush();
}

void ParameterClient::Cancel() {
  cancelled_ = true;
  sync_.Cancel();
  for (auto& channel : channels_) channel->Cancel();
}

absl::Status ParameterClient::OpenSharedMemory() {
  if (push_ != nullptr || memory_.shared_gradients() == nullptr) {
    return absl::OkStatus();
  }
  const int num_servers = static_cast<int>(options_.servers.size());
  for (int server = 0; server < num_servers; ++server) {
    const bool anew = sharing_[server] != nullptr && !sharing_[server]->open;
    if (chunks_[server].empty() || (opened_ && !anew)) continue;
    sharing_[server].reset();
    absl::StatusOr<SharedValues> values = OpenSharedMemoryOf(server);
    if (cancelled_) return absl::CancelledError("the job ended");
    if (!values.ok()) {
      spdlog::info("shares no memory with ps {}: {}", server,
                   std::string(values.status().message()));
      continue;
    }
    spdlog::info("shares memory with ps {}", server);
    sharing_[server] = std::make_unique<SharingServer>(*std::move(values));
    if (!anew) CutForSharing(server);
  }
  opened_ = true;
  return absl::OkStatus();
}

void ParameterClient::CutForSharing(int server) {
  size_t total = 0;
  for (const Chunk& chunk : chunks_[server]) total += chunk.size;
  const size_t target = std::min(total / kSharedCalls, kLargestSharedChunk);
  chunks_[server] =
      MakeChunks(plan_, static_cast<int>(chunks_.size()),
                 std::max<size_t>(target, options_.max_part_bytes))[server];
  held_[server].assign(chunks_[server].size(), Held());
  rounded_[server].assign(chunks_[server].size(), 0);
  routed_[server].assign(chunks_[server].size(), {});
  ready_ = ReadyChunks(chunks_);
}

absl::StatusOr<SharedValues> ParameterClient::OpenSharedMemoryOf(int server) {
  v1::OpenSharedMemoryRequest request;
  *request.mutable_identity() = ToProto(options_.self);
  *request.mutable_gradients() = ToProto(memory_.shared_gradients()->file());
  for (const Chunk& chunk : chunks_[server]) {
    for (const MemoryRange& range : chunk.ranges) {
      request.add_offsets(memory_.shared_offset(range.variable) + range.offset);
    }
  }
  v1::OpenSharedMemoryResponse response;
  CallClient calls(*channels_[server], server, cancelled_);
  PassFaultPoint(FaultPoint::kWorkerShareSend);
  LOCKSTEP_RETURN_IF_ERROR(calls.CallUntilAnswered(kOpen, request, response));
  PassFaultPoint(FaultPoint::kWorkerShareAnswered);
  return SharedValues::Open(FromProto(response.values()),
                            FromProto(response.counters()));
}

ChunkTransfer::Options ParameterClient::TransferOptions(
    const std::string& what) {
  ChunkTransfer::Options options;
  options.window = kWindow;
  options.retry_pause = kRetryPause;
  options.wait = [this](absl::FunctionRef<bool()> done,
                        absl::Duration at_most) {
    poller_.RunUntil(done, Clock::Real().Now() + at_most);
  };
  options.on_retry = [what, reported = Clock::Real().Now()](
                         int server, const absl::Status& status) mutable {
    if (Clock::Real().Now() - reported < kReportEvery) return;
    reported = Clock::Real().Now();
    spdlog::info("{} waits for ps {}: {}", what, server,
                 std::string(status.message()));
  };
  return options;
}

absl::Status ParameterClient::Finish(ChunkTransfer& transfer) {
  const absl::Status status = transfer.Run();
  if (cancelled_) return absl::CancelledError("the job ended");
  return status;
}

void ParameterClient::Store(const TensorPayload& payload, const Chunk& chunk) {
  size_t slice = 0;
  size_t offset = 0;
  for (const MemoryRange& range : chunk.ranges) {
    std::byte* to = memory_.value(range.variable).data() + range.offset;
    for (size_t left = range.size; left > 0;) {
      const grpc::Slice& from = payload.slices[slice];
      const size_t piece = std::min(left, from.size() - offset);
      const auto* bytes =
          reinterpret_cast<const std::byte*>(from.begin()) + offset;
      if (payload.size < kStreamFrom) {
        std::memcpy(to, bytes, piece);
      } else {
        StreamCopy(piece, bytes, to);
      }
      to += piece;
      left -= piece;
      offset += piece;
      if (offset == from.size()) {
        ++slice;
        offset = 0;
      }
    }
  }
  FinishStreaming();
}

absl::Status ParameterClient::Copy(const Places& places, int server,
                                   const Chunk& chunk) {
  if (sharing_[server] == nullptr || places.size() != chunk.num_parts) {
    return absl::InternalError(absl::StrCat("ps ", server, " told ",
                                            places.size(), " places of ",
                                            chunk.num_parts, " parts"));
  }
  for (int i = 0; i < places.size(); ++i) {
    const MemoryRange& range = chunk.ranges[i];
    const absl::Status status = sharing_[server]->values.Copy(
        FromProto(places[i]),
        memory_.value(range.variable).subspan(range.offset, range.size));
    if (absl::IsAborted(status)) return status;
    if (!status.ok()) return absl::InternalError(status.message());
  }
  return absl::OkStatus();
}

absl::Status ParameterClient::Reconsider(const absl::Status& status,
                                         int server) {
  if (!absl::IsNotFound(status) || sharing_[server] == nullptr) return status;
  if (sharing_[server]->open.exchange(false)) {
    spdlog::info("shares no memory with ps {} any more: {}", server,
                 std::string(status.message()));
  }
  return absl::UnavailableError(status.message());
}

absl::Status ParameterClient::TakePushed(const grpc::ByteBuffer& response,
                                         int server, size_t index,
                                         const v1::PushHeader& header,
                                         v1::PushResult& result) {
  const Chunk& chunk = chunks_[server][index];
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, result, payload));
  if (result.values_size() > 0) {
    const absl::Status copied = Copy(result.values(), server, chunk);
    if (absl::IsAborted(copied)) return absl::OkStatus();  // Pull() gets others
    LOCKSTEP_RETURN_IF_ERROR(copied);
  } else if (payload.size == 0) {
    return absl::OkStatus();
  } else if (payload.size == chunk.size) {
    Store(payload, chunk);
  } else {
    return absl::InternalError(absl::StrCat(
        "Push answered ", payload.size, " bytes for parts of ", chunk.size));
  }
  held_[server][index] = {header.local_step() + 1, header.attempt()};
  return absl::OkStatus();
}

std::vector<grpc::Slice> ParameterClient::Payload(const Chunk& chunk) const {
  std::vector<grpc::Slice> payload;
  if (options_.gradient_type == GradientType::kBFloat16) {
    FilledSlice packed(chunk.size / sizeof(float) * kBFloat16Size);
    std::byte* to = packed.memory;
    for (const MemoryRange& range : chunk.ranges) {
      const size_t elements = range.size / sizeof(float);
      RoundToBFloat16(
          elements, memory_.gradient(range.variable).data() + range.offset, to);
      to += elements * kBFloat16Size;
    }
    payload.push_back(std::move(packed.slice));
    return payload;
  }
  for (const MemoryRange& range : chunk.ranges) {
    payload.push_back(UnownedSlice(
        memory_.gradient(range.variable).data() + range.offset, range.size));
  }
  return payload;
}

void ParameterClient::RoundInPlace(int server, size_t index, int64_t pass) {
  if (options_.gradient_type != GradientType::kBFloat16) return;
  if (std::exchange(rounded_[server][index], pass) == pass) return;
  for (const MemoryRange& range : chunks_[server][index].ranges) {
    if (plan_.variables[range.variable].dtype != DType::kFloat32) continue;
    RoundToBFloat16InPlace(
        range.size / sizeof(float),
        memory_.gradient(range.variable).data() + range.offset);
  }
}

void ParameterClient::StartPush(
    int server, size_t index, const v1::PushHeader& header,
    std::function<void(const v1::PushResult&)> count,
    ChunkTransfer::Report report) {
  const Chunk& chunk = chunks_[server][index];
  v1::PushHeader of_chunk = header;
  of_chunk.set_server(server);
  of_chunk.mutable_parts()->set_first_part(chunk.first_part);
  of_chunk.mutable_parts()->set_num_parts(chunk.num_parts);
  std::vector<grpc::Slice> payload;
  if (chunk.table.has_value()) {
    of_chunk.set_return_values(false);
    AddRows(routed_[server][index], *of_chunk.add_rows());
    payload.push_back(RowGradients(*chunk.table, routed_[server][index],
                                   memory_, options_.gradient_type));
  } else if (Shares(server)) {
    RoundInPlace(server, index, header.pass());
    of_chunk.set_shared(true);
    of_chunk.set_gradient_type(v1::VARIABLE);
  } else {
    payload = Payload(chunk);
  }
  PassFaultPoint(FaultPoint::kWorkerPushSend);
  channels_[server]->Call(
      CallSize(server, index), kPush, EncodeTensorMessage(of_chunk, payload),
      kCallDeadline,
      [this, server, index, &header, count = std::move(count),
       report = std::move(report)](absl::Status status,
                                   grpc::ByteBuffer response) {
        PassFaultPoint(FaultPoint::kWorkerPushAnswered);
        v1::PushResult result;
        if (status.ok()) {
          status = TakePushed(response, server, index, header, result);
        }
        if (status.ok()) count(result);
        report(Reconsider(status, server));
      });
}

void ParameterClient::BeginPass(const PassId& pass, PassKind kind, bool watch) {
  DropPush();
  // Where everybody counts, the next pass begins early: see TrainingLoop.
  ready_.Reset(kind == PassKind::kEverybodyCounts
                   ? ReadyChunks::Order::kThirdsLast
                   : ReadyChunks::Order::kAsReady);
  if (watch) sync_.Watch(pass);
}

void ParameterClient::GradientReady(size_t variable) {
  for (const ReadyChunks::Id& id : ready_.MarkReady(variable)) {
    if (push_ == nullptr) continue;
    ChunkTransfer& transfer = *push_->transfer;
    // To start a large one takes as long as to copy it to the kernel.
    if (CallSize(id.server, id.chunk) == ServerChannel::Size::kSmall) {
      transfer.Add(id.server, id.chunk);
    } else if (transfer.AddOnly(id.server, id.chunk)) {
      poller_.Soon(&push_->start_added);
    }
  }
}

void ParameterClient::BeginPush(const PassId& pass, int64_t attempt) {
  DropPush();
  push_ = std::make_unique<ActivePush>();
  push_->pass = pass;
  push_->attempt = attempt;
  v1::PushHeader& header = push_->header;
  *header.mutable_identity() = ToProto(options_.self);
  header.set_local_step(pass.step);
  header.set_pass(pass.number);
  header.set_slot(pass.slot);
  header.set_attempt(attempt);
  header.set_return_values(attempt > 0);
  header.set_gradient_type(ToProto(options_.gradient_type));
  {
    MutexLock lock(push_->mutex);
    push_->through.resize(chunks_.size());
  }
  const auto start = [this, push = push_.get()](int server, size_t index,
                                                ChunkTransfer::Report report) {
    const auto count = [=](const v1::PushResult& result) {
      MutexLock lock(push->mutex);
      CountOutcomes(result, push->counts);
      push->through[server].insert(index);
    };
    StartPush(server, index, push->header, count, std::move(report));
  };
  ChunkTransfer::Options transfer_options = TransferOptions("push");
  // Workers that cut the same gradients into other chunks fill their windows in
  // another order, and would wait for one another. Without a window nobody
  // waits for a call that is still to start.
  for (const auto& sharing : sharing_) {
    transfer_options.without_window.push_back(sharing != nullptr);
  }
  push_->transfer = std::make_unique<ChunkTransfer>(
      std::move(transfer_options), ChunkLists(chunks_.size()), start);
  // The members of an attempt send in one order. Of a later one some may have
  // begun the pass when others counted.
  if (attempt > 1) ready_.KeepNothingBack();
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t chunk : ready_.order()[server]) {
      push_->transfer->Add(static_cast<int>(server), chunk);
    }
  }
}

void ParameterClient::SendRest(const PassId& pass, int64_t attempt) {
  const bool begun =
      push_ != nullptr && push_->pass == pass && push_->attempt == attempt;
  if (begun && push_->rest_sent) return;
  ServerChannel::Together together(*channels_[0]);
  if (attempt > 0) sync_.SendTakeToken(pass, attempt);
  if (!begun) BeginPush(pass, attempt);
  push_->rest_sent = true;
  for (const ReadyChunks::Id& id : ready_.MarkRest()) {
    push_->transfer->Add(id.server, id.chunk);
  }
  if (attempt > 0 && push_->transfer->AllStarted(0)) together.Wait();
}

absl::StatusOr<PushCounts> ParameterClient::Push(const PassId& pass,
                                                 int64_t attempt) {
  SendRest(pass, attempt);
  const absl::Status status = Finish(*push_->transfer);
  const std::unique_ptr<ActivePush> push = std::move(push_);
  LOCKSTEP_RETURN_IF_ERROR(status);
  MutexLock lock(push->mutex);
  return push->counts;
}

absl::Status ParameterClient::AwaitValues(size_t first, size_t count) {
  if (push_ == nullptr) return absl::AbortedError("no push is under way");
  std::vector<ReadyChunks::Id> chunks;
  for (size_t variable = first; variable < first + count; ++variable) {
    const auto& of_variable = ready_.ChunksOf(variable);
    chunks.insert(chunks.end(), of_variable.begin(), of_variable.end());
  }
  const auto known = [&] {
    MutexLock lock(push_->mutex);
    while (!chunks.empty() &&
           push_->through[chunks.back().server].contains(chunks.back().chunk)) {
      const Held& held = held_[chunks.back().server][chunks.back().chunk];
      if (held.step != push_->pass.step + 1 || held.attempt != push_->attempt) {
        return true;
      }
      chunks.pop_back();
    }
    return chunks.empty();
  };
  if (!known()) {
    push_->transfer->RunUntil(known);
    poller_.ServeAlone();
  }
  if (known() && chunks.empty()) return absl::OkStatus();
  return absl::AbortedError("the push has not brought all of the values");
}

void ParameterClient::DropPush() {
  if (push_ == nullptr) return;
  push_->transfer->Run().IgnoreError();
  push_.reset();
}

void ParameterClient::SettleHeld(int64_t step, int64_t attempt) {
  for (auto& of_server : held_) {
    for (Held& held : of_server) {
      if (held.attempt == 0) continue;
      const bool committed = held.step == step && held.attempt == attempt;
      held = committed ? Held{step, 0} : Held();
    }
  }
}

absl::StatusOr<Announcement> ParameterClient::Announce(const PassId& pass) {
  return sync_.Announce(pass);
}

absl::StatusOr<Token> ParameterClient::TakeToken(const PassId& pass,
                                                 int64_t attempt) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Token token, sync_.TakeToken(pass, attempt));
  if (token.kind == Token::Kind::kToken) SettleHeld(token.step, token.attempt);
  return token;
}

}  // namespace lockstep
