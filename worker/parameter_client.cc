#include "worker/parameter_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";
constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";
constexpr char kAnnounce[] = "/lockstep.v1.SyncService/Announce";
constexpr char kTakeToken[] = "/lockstep.v1.SyncService/TakeToken";

// Two connections let both of gRPC's event threads copy at the same time; with
// more servers there are enough without.
constexpr int kConnections = 2;
constexpr int kWindow = 4;
constexpr absl::Duration kCallDeadline = absl::Seconds(10);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr absl::Duration kReportEvery = absl::Seconds(5);

void CountOutcomes(const v1::PushResponse& response, PushCounts& counts) {
  for (int outcome : response.outcomes()) {
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
      memory_(memory),
      chunks_(MakeChunks(plan, static_cast<int>(options.servers.size()),
                         options.max_part_bytes)) {
  const int connections = options_.servers.size() == 1 ? kConnections : 1;
  for (const std::string& address : options_.servers) {
    channels_.push_back(std::make_unique<ServerChannel>(address, connections));
  }
}

void ParameterClient::Cancel() {
  cancelled_ = true;
  for (auto& channel : channels_) channel->Cancel();
}

absl::Status ParameterClient::RunTransfer(const std::string& what,
                                          ChunkTransfer::Start start) {
  std::vector<size_t> counts;
  for (const auto& chunks : chunks_) counts.push_back(chunks.size());
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
      ChunkTransfer(options, counts, std::move(start)).Run();
  if (cancelled_) return absl::CancelledError("the job ended");
  return status;
}

absl::Status ParameterClient::PullChunk(const grpc::ByteBuffer& response,
                                        const Chunk& chunk,
                                        PulledSteps& steps) {
  v1::PullHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, header, payload));
  if (payload.size != chunk.size) {
    return absl::InternalError(absl::StrCat(
        "Pull answered ", payload.size, " bytes for parts of ", chunk.size));
  }
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
  const int64_t step = header.step();
  for (int64_t seen = steps.lowest;
       step < seen && !steps.lowest.compare_exchange_weak(seen, step);) {
  }
  for (int64_t seen = steps.highest;
       step > seen && !steps.highest.compare_exchange_weak(seen, step);) {
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ParameterClient::Pull(int64_t step) {
  while (true) {
    PulledSteps steps{INT64_MAX, -1};
    LOCKSTEP_RETURN_IF_ERROR(RunTransfer(
        "pull", [&](int server, size_t index, ChunkTransfer::Report report) {
          const Chunk& chunk = chunks_[server][index];
          v1::PullRequest request;
          *request.mutable_identity() = ToProto(options_.self);
          request.mutable_parts()->set_first_part(chunk.first_part);
          request.mutable_parts()->set_num_parts(chunk.num_parts);
          request.set_step(step);
          channels_[server]->Call(
              kPull, EncodeMessage(request), kCallDeadline,
              [&, report = std::move(report)](absl::Status status,
                                              grpc::ByteBuffer response) {
                if (status.ok()) status = PullChunk(response, chunk, steps);
                report(status);
              });
        }));
    if (step < 0 || steps.lowest == steps.highest) return steps.highest.load();
    // Training went on while this worker pulled: ask for the newer step.
    step = steps.highest;
  }
}

absl::StatusOr<PushCounts> ParameterClient::Push(const PassId& pass,
                                                 int64_t attempt) {
  Mutex mutex;
  PushCounts counts;
  v1::PushHeader header;
  *header.mutable_identity() = ToProto(options_.self);
  header.set_local_step(pass.step);
  header.set_pass(pass.number);
  header.set_slot(pass.slot);
  header.set_attempt(attempt);
  LOCKSTEP_RETURN_IF_ERROR(RunTransfer(
      "push", [&](int server, size_t index, ChunkTransfer::Report report) {
        const Chunk& chunk = chunks_[server][index];
        v1::PushHeader of_chunk = header;
        of_chunk.mutable_parts()->set_first_part(chunk.first_part);
        of_chunk.mutable_parts()->set_num_parts(chunk.num_parts);
        std::vector<grpc::Slice> payload;
        for (const MemoryRange& range : chunk.ranges) {
          payload.push_back(UnownedSlice(
              memory_.gradient(range.variable).data() + range.offset,
              range.size));
        }
        channels_[server]->Call(
            kPush, EncodeTensorMessage(of_chunk, payload), kCallDeadline,
            [&, report = std::move(report)](absl::Status status,
                                            grpc::ByteBuffer response) {
              v1::PushResponse answer;
              if (status.ok()) status = DecodeMessage(response, answer);
              if (status.ok()) {
                MutexLock lock(mutex);
                CountOutcomes(answer, counts);
              }
              report(status);
            });
      }));
  return counts;
}

absl::Status ParameterClient::CallSync(
    const std::string& method, const google::protobuf::MessageLite& request,
    google::protobuf::MessageLite& response) {
  const grpc::ByteBuffer bytes = EncodeMessage(request);
  absl::Time reported = absl::Now();
  absl::Duration pause = kRetryPause;
  while (!cancelled_) {
    absl::Notification done;
    absl::Status result;
    grpc::ByteBuffer answer;
    channels_[0]->Call(method, bytes, kCallDeadline,
                       [&](absl::Status status, grpc::ByteBuffer buffer) {
                         result = std::move(status);
                         answer = std::move(buffer);
                         done.Notify();
                       });
    done.WaitForNotification();
    if (result.ok()) return DecodeMessage(answer, response);
    if (!absl::IsUnavailable(result) && !absl::IsDeadlineExceeded(result)) {
      return cancelled_ ? absl::CancelledError("the job ended") : result;
    }
    if (absl::Now() - reported > kReportEvery) {
      reported = absl::Now();
      spdlog::info("waits for ps 0: {}", std::string(result.message()));
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
  LOCKSTEP_RETURN_IF_ERROR(CallSync(kAnnounce, request, response));
  Announcement announcement;
  announcement.attempt = response.attempt();
  if (response.decision() == v1::SELECTED) {
    announcement.decision = Announcement::Decision::kSelected;
  } else if (response.decision() == v1::NOT_NEEDED) {
    announcement.decision = Announcement::Decision::kNotNeeded;
  }
  return announcement;
}

absl::StatusOr<Token> ParameterClient::TakeToken(const PassId& pass,
                                                 int64_t attempt) {
  v1::TakeTokenRequest request;
  *request.mutable_identity() = ToProto(options_.self);
  request.set_local_step(pass.step);
  request.set_pass(pass.number);
  request.set_slot(pass.slot);
  request.set_attempt(attempt);
  const absl::Time began = absl::Now();
  absl::Time reported = began;
  while (true) {
    v1::TakeTokenResponse response;
    LOCKSTEP_RETURN_IF_ERROR(CallSync(kTakeToken, request, response));
    switch (response.outcome()) {
      case v1::TOKEN:
        return Token{Token::Kind::kToken, response.step(), response.slot(), 0};
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
