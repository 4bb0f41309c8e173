#include "worker/loop/training_loop.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/shares.h"
#include "worker/loop/strict_pass.h"

namespace lockstep {
namespace {

std::string Computes(int64_t step) {
  return absl::StrCat("computes step ", step + 1);
}

// Whether the values that were pushed for `attempt` are those of the pass.
bool Follows(const absl::StatusOr<Token>& token, const PassId& pass,
             int64_t attempt) {
  return token.ok() && token->kind == Token::Kind::kToken &&
         token->step == pass.step && token->slot == pass.slot &&
         token->attempt == attempt;
}

}  // namespace

TrainingLoop::TrainingLoop(const Options& options, StepClient& client,
                           GradientSource& source, ProgressMeter& meter)
    : options_(options), client_(client), source_(source), meter_(meter) {}

absl::Status TrainingLoop::Run() {
  return options_.mode == SyncMode::kStrict ? RunStrict() : RunCompatible();
}

int TrainingLoop::Shares() const {
  return SharesOf(options_.worker, options_.replicas_to_aggregate,
                  options_.total_num_replicas);
}

int64_t TrainingLoop::BatchOf(const PassId& pass) const {
  return pass.step * Shares() + pass.slot;
}

absl::Status TrainingLoop::CheckToken(const Token& token) const {
  if (token.kind != Token::Kind::kToken) return absl::OkStatus();
  const int64_t shares =
      options_.mode == SyncMode::kStrict ? std::max(Shares(), 1) : 1;
  // One step after this one is computed early. A share may be above those that
  // the worker joined with, if an operator has changed the replicas since.
  const int64_t limit =
      (std::numeric_limits<int64_t>::max() - std::numeric_limits<int>::max()) /
          shares -
      2;
  if (token.step >= 0 && token.step <= limit && token.slot >= 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "ps 0 sent a token for step ", token.step, ", share ", token.slot,
      "; the step must be in [0, ", limit,
      "] and the share 0 or more: start a ps_server of this program's "
      "version"));
}

absl::Status TrainingLoop::Compute(int64_t step, int64_t index,
                                   const PassHooks& hooks) {
  meter_.Begin(Computes(step), false);
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
  LOCKSTEP_ASSIGN_OR_RETURN(Token token, client_.TakeToken(pass_, attempt));
  LOCKSTEP_RETURN_IF_ERROR(CheckToken(token));
  return token;
}

bool TrainingLoop::IsLeaving() const {
  return options_.leaving != nullptr && *options_.leaving;
}

absl::Status TrainingLoop::RunStrict() {
  pass_.step = -1;  // before any step: the first token is free
  LOCKSTEP_ASSIGN_OR_RETURN(Token token, NextToken(0));
  while (token.kind != Token::Kind::kFinished) {
    if (IsLeaving()) return absl::CancelledError("this worker leaves");
    LOCKSTEP_ASSIGN_OR_RETURN(token, RunPasses(token));
  }
  return absl::OkStatus();
}

absl::StatusOr<Token> TrainingLoop::RunPasses(const Token& token) {
  pass_.step = token.step;
  pass_.slot = token.slot;
  LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(BatchOf(pass_)));
  std::optional<StrictPass> pass;
  LOCKSTEP_RETURN_IF_ERROR(Enter(token, pass));
  if (!pass.has_value()) return NextToken(0);
  absl::Status computed = Compute(pass_.step, BatchOf(pass_), pass->Hooks());
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t attempt, Leave(computed, *pass));
    if (attempt == kDropped) return NextToken(0);
    if (!BeginsEarly(*pass)) return PushUntilToken(attempt);
    pass.reset();
    LOCKSTEP_ASSIGN_OR_RETURN(const Token next,
                              ComputeEarly(attempt, pass, computed));
    if (!pass.has_value()) return next;
  }
}

absl::Status TrainingLoop::Enter(const Token& token,
                                 std::optional<StrictPass>& pass) {
  meter_.Begin(absl::StrCat("pulls step ", token.step), true);
  LOCKSTEP_ASSIGN_OR_RETURN(int64_t pulled, client_.Pull(token.step));
  if (pulled != token.step) return absl::OkStatus();
  pass_.step = token.step;
  ++pass_.number;
  // Where not everybody counts, nobody is selected by a token.
  const bool watch =
      token.selected_attempt == 0 &&
      options_.total_num_replicas >= options_.replicas_to_aggregate;
  pass.emplace(client_, pass_,
               StrictPass::Options{.selected_attempt = token.selected_attempt,
                                   .watch = watch});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TrainingLoop::Leave(const absl::Status& computed,
                                            StrictPass& pass) {
  if (absl::IsAborted(computed) && pass.dropped()) {
    meter_.Dropped();
    return kDropped;
  }
  LOCKSTEP_RETURN_IF_ERROR(pass.status());
  LOCKSTEP_RETURN_IF_ERROR(computed);
  LOCKSTEP_RETURN_IF_ERROR(pass.Finish());
  return pass.attempt();
}

bool TrainingLoop::BeginsEarly(const StrictPass& pass) const {
  return pass.everybody_counts() && source_.WaitsForValues() && !IsLeaving();
}

absl::StatusOr<Token> TrainingLoop::ComputeEarly(
    int64_t attempt, std::optional<StrictPass>& pass, absl::Status& computed) {
  PassId next = pass_;
  ++next.step;
  std::optional<absl::StatusOr<Token>> token;
  PassHooks of_pass;
  PassHooks hooks;
  hooks.on_gradient = [&](size_t variable) { of_pass.Report(variable); };
  hooks.unwanted = [&] { return !of_pass.CheckWanted().ok(); };
  hooks.before_use = [&](size_t first, size_t count) {
    meter_.Begin(absl::StrCat("waits for values of step ", next.step), true);
    const absl::Status status = client_.AwaitValues(first, count);
    meter_.Begin(Computes(next.step), false);
    return status;
  };
  hooks.before_gradients = [&]() -> absl::Status {
    token = PushUntilToken(attempt);
    if (!IsLeaving() && Follows(*token, next, attempt)) {
      LOCKSTEP_RETURN_IF_ERROR(Enter(**token, pass));
    }
    if (!pass.has_value()) return absl::AbortedError("its values do not count");
    of_pass = pass->Hooks();
    meter_.Begin(Computes(next.step), false);
    return absl::OkStatus();
  };
  client_.SendRest(pass_, attempt);
  computed = Compute(next.step, BatchOf(next), hooks);
  // A pass that failed before is tried once more, with a token.
  if (!token.has_value()) token = PushUntilToken(attempt);
  return *token;
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
    LOCKSTEP_RETURN_IF_ERROR(Compute(pass_.step, index, {}));
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
