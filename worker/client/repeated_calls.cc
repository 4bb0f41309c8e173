#include "worker/client/repeated_calls.h"

#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/tensor_message.h"
#include "worker/client/exchange/call_deadline.h"
#include "worker/client/exchange/retry_pause.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

std::shared_ptr<RepeatedCalls::Call> RepeatedCalls::Start(
    const std::string& method, const grpc::ByteBuffer& request) {
  auto call = std::make_shared<Call>();
  channel_.Call(ServerChannel::Size::kSmall, method, request, CallDeadline(0),
                [call](absl::Status status, grpc::ByteBuffer answer) {
                  call->status = std::move(status);
                  call->answer = std::move(answer);
                  call->done = true;
                });
  return call;
}

absl::Status RepeatedCalls::CallUntilAnswered(
    const std::string& method, const google::protobuf::MessageLite& request,
    google::protobuf::MessageLite& response, std::shared_ptr<Call> first) {
  const grpc::ByteBuffer bytes = EncodeMessage(request);
  absl::Time reported = Clock::Real().Now();
  RetryPause pause;
  std::shared_ptr<Call> call = std::move(first);
  while (!cancelled_) {
    if (call == nullptr) call = Start(method, bytes);
    channel_.poller().RunUntil([&] { return call->done.load(); });
    const absl::Status result = call->status;
    if (result.ok()) return DecodeMessage(call->answer, response);
    call = nullptr;
    const std::optional<absl::Duration> again = pause.After(result);
    if (!again.has_value()) {
      // A cancelled channel fails calls with kCancelled, but a race may report
      // another error first.
      return cancelled_ ? absl::CancelledError("the job ended") : result;
    }
    if (Clock::Real().Now() - reported > kReportEvery) {
      reported = Clock::Real().Now();
      spdlog::info("waits for ps {}: {}", server_,
                   std::string(result.message()));
    }
    // In place of a sleep: this thread polls for the calls of others meanwhile.
    channel_.poller().RunUntil([&] { return cancelled_.load(); },
                               Clock::Real().Now() + *again);
  }
  return absl::CancelledError("the job ended");
}

}  // namespace lockstep::worker
