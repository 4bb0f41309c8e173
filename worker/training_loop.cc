#include "worker/training_loop.h"

#include "absl/strings/str_cat.h"
#include "common/shares.h"
#include "common/status_macros.h"
#include "worker/strict_pass.h"

namespace lockstep {

TrainingLoop::TrainingLoop(const Options& options, StepClient& client,
                           GradientSource& source, ProgressMeter& meter)
    : options_(options), client_(client), source_(source), meter_(meter) {}

absl::Status TrainingLoop::Run() {
  return options_.mode == SyncMode::kStrict ? RunStrict() : RunCompatible();
}

int64_t TrainingLoop::BatchOf(const PassId& pass) const {
  const int shares = SharesOf(options_.worker, options_.replicas_to_aggregate,
                              options_.total_num_replicas);
  return pass.step * shares + pass.slot;
}

absl::Status TrainingLoop::Compute(int64_t index, const PassHooks& hooks) {
  meter_.Begin(absl::StrCat("computes step ", pass_.step + 1), false);
  LOCKSTEP_ASSIGN_OR_RETURN(GradientResult result,
                            source_.Compute(index, hooks));
  meter_.Computed(pass_.step, result.loss, result.examples);
  meter_.NonFinite(result.non_finite);
  return absl::OkStatus();
}

absl::StatusOr<PushCounts> TrainingLoop::Push(int64_t attempt) {
  meter_.Begin(absl::StrCat("pushes step ", pass_.step + 1), true);
  LOCKSTEP_ASSIGN_OR_RETURN(PushCounts counts, client_.Push(pass_, attempt));
  meter_.Duplicates(counts.duplicate);
  return counts;
}

absl::StatusOr<Token> TrainingLoop::NextToken(int64_t attempt) {
  meter_.Begin(absl::StrCat("waits for a token after step ", pass_.step + 1),
               true);
  return client_.TakeToken(pass_, attempt);
}

absl::Status TrainingLoop::RunStrict() {
  pass_.step = -1;  // before any step: the first token is free
  LOCKSTEP_ASSIGN_OR_RETURN(Token token, NextToken(0));
  while (token.kind != Token::Kind::kFinished) {
    if (options_.leaving != nullptr && *options_.leaving) {
      return absl::CancelledError("this worker leaves");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(token, RunPass(token));
  }
  return absl::OkStatus();
}

absl::StatusOr<Token> TrainingLoop::RunPass(const Token& token) {
  pass_.step = token.step;
  pass_.slot = token.slot;
  LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(BatchOf(pass_)));
  meter_.Begin(absl::StrCat("pulls step ", token.step), true);
  LOCKSTEP_ASSIGN_OR_RETURN(int64_t pulled, client_.Pull(token.step));
  if (pulled != token.step) return NextToken(0);  // too slow: the step is over
  ++pass_.number;
  StrictPass pass(
      client_, pass_,
      {.selected_attempt = token.selected_attempt,
       // Where not everybody counts, nobody is selected by a token.
       .watch = token.selected_attempt == 0 &&
                options_.total_num_replicas >= options_.replicas_to_aggregate});
  const absl::Status computed = Compute(BatchOf(pass_), pass.Hooks());
  if (absl::IsAborted(computed) && pass.dropped()) {
    meter_.Dropped();
    return NextToken(0);
  }
  LOCKSTEP_RETURN_IF_ERROR(pass.status());
  LOCKSTEP_RETURN_IF_ERROR(computed);
  LOCKSTEP_RETURN_IF_ERROR(pass.Finish());
  return PushUntilToken(pass.attempt());
}

absl::StatusOr<Token> TrainingLoop::PushUntilToken(int64_t attempt) {
  bool counted = false;
  Token token;
  while (true) {
    if (attempt > 0) {
      LOCKSTEP_ASSIGN_OR_RETURN(PushCounts counts, Push(attempt));
      counted = counts.superseded == 0 && counts.stale == 0;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(token, NextToken(attempt));
    if (token.kind != Token::Kind::kRedo) break;
    attempt = token.attempt;
  }
  // The step may have come of another attempt, with somebody else's gradient.
  if (counted && !token.not_needed) {
    meter_.Accepted();
  } else {
    meter_.Stale();
  }
  return token;
}

absl::Status TrainingLoop::RunCompatible() {
  pass_.step = options_.first_step;
  for (int64_t index = options_.first_step;; ++index) {
    LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(index));
    meter_.Begin("pulls", true);
    LOCKSTEP_RETURN_IF_ERROR(client_.Pull(-1).status());
    LOCKSTEP_RETURN_IF_ERROR(Compute(index, {}));
    ++pass_.number;
    LOCKSTEP_ASSIGN_OR_RETURN(PushCounts counts, Push(0));
    if (counts.accepted + counts.duplicate > 0) {
      meter_.Accepted();
    } else {
      meter_.Stale();
    }
    LOCKSTEP_ASSIGN_OR_RETURN(Token token, NextToken(0));
    if (token.kind == Token::Kind::kFinished) return absl::OkStatus();
    pass_.step = token.step;
  }
}

}  // namespace lockstep
