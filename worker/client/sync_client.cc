#include "worker/client/sync_client.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/text/duration_text.h"
#include "common/wire/tensor_message.h"

namespace lockstep::worker {
namespace {

constexpr char kAnnounce[] = "/lockstep.v1.SyncService/Announce";
constexpr char kTakeToken[] = "/lockstep.v1.SyncService/TakeToken";

constexpr absl::Duration kCallDeadline = absl::Seconds(10);
constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

absl::StatusOr<Announcement> SyncClient::Announce(const PassId& pass) {
  v1::AnnounceRequest request;
  *request.mutable_identity() = ToProto(self_);
  request.set_local_step(pass.step);
  request.set_pass(pass.number);
  request.set_slot(pass.slot);
  request.set_block(pass.block);
  v1::AnnounceResponse response;
  PassFaultPoint(FaultPoint::kWorkerAnnounceSend);
  LOCKSTEP_RETURN_IF_ERROR(
      calls_.CallUntilAnswered(kAnnounce, request, response));
  PassFaultPoint(FaultPoint::kWorkerAnnounceAnswered);
  Announcement announcement;
  announcement.attempt = response.attempt();
  if (response.decision() == v1::SELECTED) {
    announcement.decision = Announcement::Decision::kSelected;
  } else if (response.decision() == v1::NOT_NEEDED) {
    announcement.decision = Announcement::Decision::kNotNeeded;
  }
  return announcement;
}

v1::TakeTokenRequest SyncClient::TokenRequest(const PassId& pass,
                                              int64_t attempt) const {
  v1::TakeTokenRequest request;
  *request.mutable_identity() = ToProto(self_);
  request.set_local_step(pass.step);
  request.set_pass(pass.number);
  request.set_slot(pass.slot);
  request.set_block(pass.block);
  request.set_attempt(attempt);
  return request;
}

void SyncClient::SendTakeToken(const PassId& pass, int64_t attempt) {
  EndWatch();
  PassFaultPoint(FaultPoint::kWorkerTokenSend);
  early_wait_ = {
      pass, attempt,
      calls_.Start(kTakeToken, EncodeMessage(TokenRequest(pass, attempt)))};
}

absl::StatusOr<Token> SyncClient::TakeToken(const PassId& pass,
                                            int64_t attempt) {
  EndWatch();
  const v1::TakeTokenRequest request = TokenRequest(pass, attempt);
  std::shared_ptr<RepeatedCalls::Call> call;
  // SendTakeToken() has sent the same request already.
  if (early_wait_.has_value() && early_wait_->pass == pass &&
      early_wait_->attempt == attempt) {
    call = std::move(early_wait_->call);
  }
  // An early call for another pass is dropped with its answer.
  early_wait_.reset();
  const absl::Time began = Clock::Real().Now();
  absl::Time reported = began;
  while (true) {
    v1::TakeTokenResponse response;
    if (call == nullptr) PassFaultPoint(FaultPoint::kWorkerTokenSend);
    LOCKSTEP_RETURN_IF_ERROR(calls_.CallUntilAnswered(
        kTakeToken, request, response, std::move(call)));
    PassFaultPoint(FaultPoint::kWorkerTokenAnswered);
    call = nullptr;
    switch (response.outcome()) {
      case v1::TOKEN:
        SetLogStep(response.step());
        return Token{Token::Kind::kToken,
                     response.step(),
                     response.slot(),
                     response.attempt(),
                     response.selected_attempt(),
                     response.not_needed(),
                     std::max(response.block(), 1)};
      case v1::TOKEN_REDO:
        return Token{Token::Kind::kRedo, 0, 0, response.attempt()};
      case v1::TOKEN_FINISHED:
        return Token{.kind = Token::Kind::kFinished,
                     .not_needed = response.not_needed()};
      // TOKEN_WAIT: the server ends a wait before the call's deadline, which
      // only a dead connection lets pass. Call again.
      default:
        break;
    }
    if (Clock::Real().Now() - reported > kReportEvery) {
      reported = Clock::Real().Now();
      spdlog::info("has waited {} for a token after step {}",
                   DurationText(reported - began, absl::Seconds(1)),
                   pass.step + 1);
    }
  }
}

void SyncClient::Watch(const PassId& pass) {
  EndWatch();
  v1::TakeTokenRequest request = TokenRequest(pass, 0);
  // The server then answers when the step is over, and gives no token.
  request.set_computing(true);
  watch_ = std::make_shared<StepWatch>(channel_, EncodeMessage(request));
  AskAboutStep(watch_);
}

// A call that fails is not repeated: the pass is then computed to its end,
// which costs time but no correctness.
void SyncClient::AskAboutStep(const std::shared_ptr<StepWatch>& watch) {
  PassFaultPoint(FaultPoint::kWorkerWatchSend);
  watch->channel.Call(
      ServerChannel::Size::kSmall, kTakeToken, watch->request, kCallDeadline,
      [watch](const absl::Status& status, const grpc::ByteBuffer& answer) {
        PassFaultPoint(FaultPoint::kWorkerWatchAnswered);
        v1::TakeTokenResponse response;
        if (!status.ok() || !DecodeMessage(answer, response).ok()) return;
        if (response.outcome() == v1::TOKEN ||
            response.outcome() == v1::TOKEN_FINISHED) {
          watch->step_is_over = true;
        } else if (response.outcome() == v1::TOKEN_WAIT && !watch->ended) {
          AskAboutStep(watch);
        }
      });
}

bool SyncClient::StepIsOver() const {
  return watch_ != nullptr && watch_->step_is_over;
}

void SyncClient::EndWatch() {
  if (watch_ != nullptr) watch_->ended = true;
}

}  // namespace lockstep::worker
