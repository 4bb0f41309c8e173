#include "worker/client/sync_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/text/duration_text.h"
#include "common/wire/tensor_message.h"
#include "worker/client/exchange/call_deadline.h"
#include "worker/client/exchange/token_answer.h"

namespace lockstep::worker {
namespace {

constexpr char kAnnounce[] = "/lockstep.v1.SyncService/Announce";
constexpr char kTakeToken[] = "/lockstep.v1.SyncService/TakeToken";

constexpr absl::Duration kReportEvery = absl::Seconds(5);

TokenAnswer::Outcome OutcomeOf(const v1::TakeTokenResponse& response) {
  switch (response.outcome()) {
    case v1::TOKEN:
      return TokenAnswer::Outcome::kToken;
    case v1::TOKEN_REDO:
      return TokenAnswer::Outcome::kRedo;
    case v1::TOKEN_FINISHED:
      return TokenAnswer::Outcome::kFinished;
    case v1::TOKEN_WAIT:
      return TokenAnswer::Outcome::kWait;
    default:
      return TokenAnswer::Outcome::kOther;
  }
}

TokenAnswer AnswerFrom(const v1::TakeTokenResponse& response) {
  return {OutcomeOf(response),
          response.step(),
          response.slot(),
          response.attempt(),
          response.selected_attempt(),
          response.not_needed(),
          std::max(response.block(), 1)};
}

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

v1::TakeTokenRequest SyncClient::TokenRequest(const PushId& after) const {
  v1::TakeTokenRequest request;
  *request.mutable_identity() = ToProto(self_);
  request.set_local_step(after.pass.step);
  request.set_pass(after.pass.number);
  request.set_slot(after.pass.slot);
  request.set_block(after.pass.block);
  request.set_attempt(after.attempt);
  return request;
}

void SyncClient::SendTakeToken(const PushId& after) {
  EndWatch();
  PassFaultPoint(FaultPoint::kWorkerTokenSend);
  early_call_.Keep(
      after, calls_.Start(kTakeToken, EncodeMessage(TokenRequest(after))));
}

bool SyncClient::TrainingIsOver(const PushId& after) const {
  const RepeatedCalls::Call* call = early_call_.Find(after);
  if (call == nullptr || !call->done || !call->status.ok()) return false;
  v1::TakeTokenResponse response;
  return DecodeMessage(call->answer, response).ok() &&
         EndsTraining(OutcomeOf(response));
}

absl::StatusOr<Token> SyncClient::TakeToken(const PushId& after) {
  EndWatch();
  const v1::TakeTokenRequest request = TokenRequest(after);
  std::shared_ptr<RepeatedCalls::Call> call = early_call_.Take(after);
  const absl::Time began = Clock::Real().Now();
  absl::Time reported = began;
  while (true) {
    v1::TakeTokenResponse response;
    if (call == nullptr) PassFaultPoint(FaultPoint::kWorkerTokenSend);
    LOCKSTEP_RETURN_IF_ERROR(calls_.CallUntilAnswered(
        kTakeToken, request, response, std::move(call)));
    PassFaultPoint(FaultPoint::kWorkerTokenAnswered);
    call = nullptr;
    const std::optional<Token> token = TokenOf(AnswerFrom(response));
    if (token.has_value()) {
      if (token->kind == Token::Kind::kToken) SetLogStep(token->step);
      return *token;
    }
    if (Clock::Real().Now() - reported > kReportEvery) {
      reported = Clock::Real().Now();
      spdlog::info("has waited {} for a token after step {}",
                   DurationText(reported - began, absl::Seconds(1)),
                   after.pass.step + 1);
    }
  }
}

void SyncClient::Watch(const PassId& pass) {
  EndWatch();
  v1::TakeTokenRequest request = TokenRequest({pass, 0});
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
      ServerChannel::Size::kSmall, kTakeToken, watch->request, CallDeadline(0),
      [watch](const absl::Status& status, const grpc::ByteBuffer& answer) {
        PassFaultPoint(FaultPoint::kWorkerWatchAnswered);
        v1::TakeTokenResponse response;
        if (!status.ok() || !DecodeMessage(answer, response).ok()) return;
        switch (WatchResultOf(OutcomeOf(response), watch->ended)) {
          case WatchResult::kStepIsOver:
            watch->step_is_over = true;
            break;
          case WatchResult::kAskAgain:
            AskAboutStep(watch);
            break;
          case WatchResult::kEnd:
            break;
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
