#include "worker/client/exchange/token_answer.h"

namespace lockstep::worker {

std::optional<Token> TokenOf(const TokenAnswer& answer) {
  switch (answer.outcome) {
    case TokenAnswer::Outcome::kToken:
      return Token{Token::Kind::kToken,
                   answer.step,
                   answer.slot,
                   answer.attempt,
                   answer.selected_attempt,
                   answer.not_needed,
                   answer.block};
    case TokenAnswer::Outcome::kRedo:
      return Token{Token::Kind::kRedo, 0, 0, answer.attempt};
    case TokenAnswer::Outcome::kFinished:
      return Token{.kind = Token::Kind::kFinished,
                   .step = answer.step,
                   .attempt = answer.attempt,
                   .not_needed = answer.not_needed};
    // The server ends a wait before the call's deadline, which only a dead
    // connection lets pass.
    case TokenAnswer::Outcome::kWait:
    case TokenAnswer::Outcome::kOther:
      break;
  }
  return std::nullopt;
}

bool EndsTraining(TokenAnswer::Outcome outcome) {
  return outcome == TokenAnswer::Outcome::kFinished;
}

void SettleValues(const Token& token, HeldChunks& chunks) {
  if (token.kind == Token::Kind::kRedo) return;
  chunks.Settle(token.step, token.attempt);
}

WatchResult WatchResultOf(TokenAnswer::Outcome outcome, bool ended) {
  switch (outcome) {
    // The token is none for this worker: it says that the step is committed.
    case TokenAnswer::Outcome::kToken:
    case TokenAnswer::Outcome::kFinished:
      return WatchResult::kStepIsOver;
    case TokenAnswer::Outcome::kWait:
      return ended ? WatchResult::kEnd : WatchResult::kAskAgain;
    case TokenAnswer::Outcome::kRedo:
    case TokenAnswer::Outcome::kOther:
      break;
  }
  return WatchResult::kEnd;
}

}  // namespace lockstep::worker
