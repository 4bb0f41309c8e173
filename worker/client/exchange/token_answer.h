#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_TOKEN_ANSWER_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_TOKEN_ANSWER_H_

#include <cstdint>
#include <optional>

#include "worker/client/chunks/held_chunks.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// The answer of ps task 0 to a wait for a token, or for the end of a step.
struct TokenAnswer {
  enum class Outcome {
    kToken,
    kRedo,
    kFinished,
    kWait,   // nothing has happened yet
    kOther,  // none that this program knows
  };
  Outcome outcome = Outcome::kWait;
  // The fields of the token, if there is one, as in Token.
  int64_t step = 0;
  int slot = 0;
  int64_t attempt = 0;
  int64_t selected_attempt = 0;
  bool not_needed = false;
  int block = 1;
};

// Returns the token that an answer to a wait for one contains; nullopt: the
// call must be repeated.
std::optional<Token> TokenOf(const TokenAnswer& answer);

// True if no step will be made any more: pushes that are not answered yet will
// not count.
bool EndsTraining(TokenAnswer::Outcome outcome);

// Must be called with each token before the values in memory are used. Values
// that answers to pushes have brought are those of an uncommitted step until a
// token names the attempt that was committed.
void SettleValues(const Token& token, HeldChunks& chunks);

// The consequence of an answer to a wait for the end of a step.
enum class WatchResult {
  kStepIsOver,
  kAskAgain,
  kEnd,  // the wait is over, and the state of the step is not known
};
// `ended`: the worker has gone on to another pass or wait.
WatchResult WatchResultOf(TokenAnswer::Outcome outcome, bool ended);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_TOKEN_ANSWER_H_
