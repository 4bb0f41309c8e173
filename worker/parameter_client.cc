#include "worker/parameter_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/shared_memory_codec.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";
constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";
constexpr char kOpen[] = "/lockstep.v1.ParameterService/OpenSharedMemory";
constexpr char kAnnounce[] = "/lockstep.v1.SyncService/Announce";
constexpr char kTakeToken[] = "/lockstep.v1.SyncService/TakeToken";

// Two connections let both of gRPC's event threads copy at the same time; with
// more servers there are enough without.
constexpr int kConnections = 2;
constexpr int kWindow = 4;
// Where bytes do not travel, a call is dear and its size is not: few calls, but
// enough for all threads of a server.
constexpr size_t kSharedCalls = 16;
constexpr size_t kLargestSharedChunk = size_t{4} << 20;
constexpr absl::Duration kCallDeadline = absl::Seconds(10);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
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

}  // namespace

ParameterClient::ParameterClient(const Options& options, const Plan& plan,
                                 ParameterMemory& memory)
    : options_(options),
      plan_(plan),
      memory_(memory),
      chunks_(MakeChunks(plan, static_cast<int>(options.servers.size()),
                         options.max_part_bytes)),
      sharing_(options.servers.size()) {
  for (const auto& chunks : chunks_) held_.emplace_back(chunks.size());
  const int connections = options_.servers.size() == 1 ? kConnections : 1;
  for (const std::string& address : options_.servers) {
    channels_.push_back(std::make_unique<ServerChannel>(address, connections));
  }
}

void ParameterClient::Cancel() {
  cancelled_ = true;
  for (auto& channel : channels_) channel->Cancel();
}

absl::Status ParameterClient::OpenSharedMemory() {
  if (opened_ || memory_.shared_gradients() == nullptr) return absl::OkStatus();
  const int num_servers = static_cast<int>(options_.servers.size());
  for (int server = 0; server < num_servers; ++server) {
    if (chunks_[server].empty()) continue;
    absl::StatusOr<SharedValues> values = OpenSharedMemoryOf(server);
    if (cancelled_) return absl::CancelledError("the job ended");
    if (!values.ok()) {
      spdlog::info("shares no memory with ps {}: {}", server,
                   std::string(values.status().message()));
      continue;
    }
    spdlog::info("shares memory with ps {}", server);
    sharing_[server] = std::make_unique<SharingServer>(*std::move(values));
    size_t total = 0;
    for (const Chunk& chunk : chunks_[server]) total += chunk.size;
    const size_t target = std::min(total / kSharedCalls, kLargestSharedChunk);
    chunks_[server] =
        MakeChunks(plan_, num_servers,
                   std::max<size_t>(target, options_.max_part_bytes))[server];
    held_[server].assign(chunks_[server].size(), Held());
  }
  opened_ = true;
  return absl::OkStatus();
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
  LOCKSTEP_RETURN_IF_ERROR(CallSync(server, kOpen, request, response));
  return SharedValues::Open(FromProto(response.values()),
                            FromProto(response.counters()));
}

absl::Status ParameterClient::RunTransfer(const std::string& what,
                                          ChunkLists chunks,
                                          ChunkTransfer::Start start) {
  ChunkTransfer::Options options;
  options.window = kWindow;
  options.retry_pause = kRetryPause;
  absl::Time reported = absl::Now();
  options.on_retry = [&](int server, const absl::Status& status) {
    if (absl::Now() - reported < kReportEvery) return;
    reported = absl::Now();
    spdlog::info("{} waits for ps {}: {}", what, server,
                 std::string(status.message()));
  };
  const absl::Status status =
      ChunkTransfer(options, std::move(chunks), std::move(start)).Run();
  if (cancelled_) return absl::CancelledError("the job ended");
  return status;
}

ParameterClient::ChunkLists ParameterClient::Missing(
    std::optional<int64_t> step) const {
  ChunkLists missing(chunks_.size());
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t i = 0; i < chunks_[server].size(); ++i) {
      const Held& held = held_[server][i];
      if (step != held.step || held.attempt != 0) missing[server].push_back(i);
    }
  }
  return missing;
}

void ParameterClient::Store(const TensorPayload& payload, const Chunk& chunk) {
  size_t slice = 0;
  size_t offset = 0;
  for (const MemoryRange& range : chunk.ranges) {
    std::byte* to = memory_.value(range.variable).data() + range.offset;
    for (size_t left = range.size; left > 0;) {
      const grpc::Slice& from = payload.slices[slice];
      const size_t piece = std::min(left, from.size() - offset);
      std::memcpy(to, from.begin() + offset, piece);
      to += piece;
      left -= piece;
      offset += piece;
      if (offset == from.size()) {
        ++slice;
        offset = 0;
      }
    }
  }
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

absl::Status ParameterClient::TakePulled(const grpc::ByteBuffer& response,
                                         int server, size_t index) {
  const Chunk& chunk = chunks_[server][index];
  v1::PullHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, header, payload));
  if (header.values_size() > 0) {
    LOCKSTEP_RETURN_IF_ERROR(Copy(header.values(), server, chunk));
  } else if (payload.size == chunk.size) {
    Store(payload, chunk);
  } else {
    return absl::InternalError(absl::StrCat(
        "Pull answered ", payload.size, " bytes for parts of ", chunk.size));
  }
  held_[server][index] = {header.step(), 0};
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

void ParameterClient::StartPull(int server, size_t index, int64_t step,
                                bool shared, ChunkTransfer::Report report) {
  const Chunk& chunk = chunks_[server][index];
  v1::PullRequest request;
  *request.mutable_identity() = ToProto(options_.self);
  request.mutable_parts()->set_first_part(chunk.first_part);
  request.mutable_parts()->set_num_parts(chunk.num_parts);
  request.set_step(step);
  request.set_shared(shared);
  channels_[server]->Call(
      kPull, EncodeMessage(request), kCallDeadline,
      [this, server, index, step, report = std::move(report)](
          absl::Status status, grpc::ByteBuffer response) {
        if (status.ok()) status = TakePulled(response, server, index);
        if (absl::IsAborted(status)) {
          // Two steps went by meanwhile. What is sent is there to stay.
          StartPull(server, index, step, /*shared=*/false, report);
          return;
        }
        report(Reconsider(status, server));
      });
}

absl::StatusOr<int64_t> ParameterClient::Pull(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(OpenSharedMemory());
  const bool one_step = step >= 0;
  while (true) {
    LOCKSTEP_RETURN_IF_ERROR(RunTransfer(
        "pull", Missing(one_step ? std::optional(step) : std::nullopt),
        [&](int server, size_t index, ChunkTransfer::Report report) {
          StartPull(server, index, step, Shares(server), std::move(report));
        }));
    int64_t newest = step;
    for (const auto& of_server : held_) {
      for (const Held& held : of_server) newest = std::max(newest, held.step);
    }
    if (!one_step || newest == step) return newest;
    // Training went on while this worker pulled: ask for the newer step.
    step = newest;
  }
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

void ParameterClient::StartPush(
    int server, size_t index, const v1::PushHeader& header,
    std::function<void(const v1::PushResult&)> count,
    ChunkTransfer::Report report) {
  const Chunk& chunk = chunks_[server][index];
  v1::PushHeader of_chunk = header;
  of_chunk.mutable_parts()->set_first_part(chunk.first_part);
  of_chunk.mutable_parts()->set_num_parts(chunk.num_parts);
  of_chunk.set_shared(Shares(server));
  std::vector<grpc::Slice> payload;
  for (const MemoryRange& range : chunk.ranges) {
    if (of_chunk.shared()) break;
    payload.push_back(UnownedSlice(
        memory_.gradient(range.variable).data() + range.offset, range.size));
  }
  channels_[server]->Call(
      kPush, EncodeTensorMessage(of_chunk, payload), kCallDeadline,
      [this, server, index, &header, count = std::move(count),
       report = std::move(report)](absl::Status status,
                                   grpc::ByteBuffer response) {
        v1::PushResult result;
        if (status.ok()) {
          status = TakePushed(response, server, index, header, result);
        }
        if (status.ok()) count(result);
        report(Reconsider(status, server));
      });
}

absl::StatusOr<PushCounts> ParameterClient::Push(const PassId& pass,
                                                 int64_t attempt) {
  LOCKSTEP_RETURN_IF_ERROR(OpenSharedMemory());
  Mutex mutex;
  PushCounts counts;
  v1::PushHeader header;
  *header.mutable_identity() = ToProto(options_.self);
  header.set_local_step(pass.step);
  header.set_pass(pass.number);
  header.set_slot(pass.slot);
  header.set_attempt(attempt);
  header.set_return_values(attempt > 0);
  if (attempt > 0) {
    early_wait_ = {
        pass, attempt,
        StartSync(0, kTakeToken, EncodeMessage(TokenRequest(pass, attempt)))};
  }
  const auto count = [&](const v1::PushResult& result) {
    MutexLock lock(mutex);
    CountOutcomes(result, counts);
  };
  LOCKSTEP_RETURN_IF_ERROR(
      RunTransfer("push", Missing(std::nullopt),
                  [&](int server, size_t index, ChunkTransfer::Report report) {
                    StartPush(server, index, header, count, std::move(report));
                  }));
  return counts;
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

std::shared_ptr<ParameterClient::SyncCall> ParameterClient::StartSync(
    int server, const std::string& method, const grpc::ByteBuffer& request) {
  auto call = std::make_shared<SyncCall>();
  channels_[server]->Call(method, request, kCallDeadline,
                          [call](absl::Status status, grpc::ByteBuffer answer) {
                            call->status = std::move(status);
                            call->answer = std::move(answer);
                            call->done.Notify();
                          });
  return call;
}

absl::Status ParameterClient::CallSync(
    int server, const std::string& method,
    const google::protobuf::MessageLite& request,
    google::protobuf::MessageLite& response, std::shared_ptr<SyncCall> first) {
  const grpc::ByteBuffer bytes = EncodeMessage(request);
  absl::Time reported = absl::Now();
  absl::Duration pause = kRetryPause;
  std::shared_ptr<SyncCall> call = std::move(first);
  while (!cancelled_) {
    if (call == nullptr) call = StartSync(server, method, bytes);
    call->done.WaitForNotification();
    const absl::Status result = call->status;
    if (result.ok()) return DecodeMessage(call->answer, response);
    call = nullptr;
    if (!absl::IsUnavailable(result) && !absl::IsDeadlineExceeded(result)) {
      return cancelled_ ? absl::CancelledError("the job ended") : result;
    }
    if (absl::Now() - reported > kReportEvery) {
      reported = absl::Now();
      spdlog::info("waits for ps {}: {}", server,
                   std::string(result.message()));
    }
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  return absl::CancelledError("the job ended");
}

absl::StatusOr<Announcement> ParameterClient::Announce(const PassId& pass) {
  v1::AnnounceRequest request;
  *request.mutable_identity() = ToProto(options_.self);
  request.set_local_step(pass.step);
  request.set_pass(pass.number);
  request.set_slot(pass.slot);
  v1::AnnounceResponse response;
  LOCKSTEP_RETURN_IF_ERROR(CallSync(0, kAnnounce, request, response));
  Announcement announcement;
  announcement.attempt = response.attempt();
  if (response.decision() == v1::SELECTED) {
    announcement.decision = Announcement::Decision::kSelected;
  } else if (response.decision() == v1::NOT_NEEDED) {
    announcement.decision = Announcement::Decision::kNotNeeded;
  }
  return announcement;
}

v1::TakeTokenRequest ParameterClient::TokenRequest(const PassId& pass,
                                                   int64_t attempt) const {
  v1::TakeTokenRequest request;
  *request.mutable_identity() = ToProto(options_.self);
  request.set_local_step(pass.step);
  request.set_pass(pass.number);
  request.set_slot(pass.slot);
  request.set_attempt(attempt);
  return request;
}

absl::StatusOr<Token> ParameterClient::TakeToken(const PassId& pass,
                                                 int64_t attempt) {
  const v1::TakeTokenRequest request = TokenRequest(pass, attempt);
  std::shared_ptr<SyncCall> call;
  if (early_wait_.has_value() && early_wait_->pass == pass &&
      early_wait_->attempt == attempt) {
    call = std::move(early_wait_->call);
  }
  early_wait_.reset();
  const absl::Time began = absl::Now();
  absl::Time reported = began;
  while (true) {
    v1::TakeTokenResponse response;
    LOCKSTEP_RETURN_IF_ERROR(
        CallSync(0, kTakeToken, request, response, std::move(call)));
    call = nullptr;
    switch (response.outcome()) {
      case v1::TOKEN:
        SettleHeld(response.step(), response.attempt());
        return Token{Token::Kind::kToken, response.step(), response.slot(), 0,
                     response.selected_attempt()};
      case v1::TOKEN_REDO:
        return Token{Token::Kind::kRedo, 0, 0, response.attempt()};
      case v1::TOKEN_FINISHED:
        return Token{Token::Kind::kFinished};
      default:
        break;
    }
    if (absl::Now() - reported > kReportEvery) {
      reported = absl::Now();
      spdlog::info("waits for a token after step {} since {}", pass.step + 1,
                   absl::FormatDuration(
                       absl::Trunc(reported - began, absl::Seconds(1))));
    }
  }
}

}  // namespace lockstep
