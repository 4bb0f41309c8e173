#include "worker/loop/training_loop.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/shares.h"
#include "worker/loop/strict_pass.h"

namespace lockstep::worker {
namespace {

// True if `token` is for `pass` and the pushes for `attempt` made its step:
// only then are the values that an early pass has read those of the step.
bool Follows(const Token& token, const PassId& pass, int64_t attempt) {
  return token.kind == Token::Kind::kToken && token.step == pass.step &&
         token.slot == pass.slot && token.attempt == attempt;
}

// The first half of a pass whose values arrive with the answers to pushes.
class EarlyPass final : public GradientPass {
 public:
  EarlyPass(StepClient& client, ProgressMeter& meter, int64_t step)
      : client_(client), meter_(meter), step_(step) {}

  bool HasAllValues() const override { return false; }

  absl::Status NeedValues(size_t first, size_t count) override {
    meter_.Begin(SpanKind::kAwaitValues, step_);
    const absl::Status status = client_.AwaitValues(first, count);
    meter_.Begin(SpanKind::kForward, step_);
    return status;
  }

 private:
  StepClient& client_;
  ProgressMeter& meter_;
  const int64_t step_;
};

// A pass of compatible mode: Push() sends all gradients after it, so that the
// clipper's callbacks have nothing to send.
class CompatiblePass final : public GradientPass {
 public:
  CompatiblePass(StepClient& client, GradientClipper* clipper)
      : client_(client), clipper_(clipper) {
    if (clipper_ != nullptr) clipper_->BeginPass();
  }

  // Other values must stay: they would be those of a later step than the rest
  // of the pass.
  absl::Status PullRows() override {
    return client_.PullAgain(-1, StepClient::PulledAgain::kRows).status();
  }
  absl::Status PullNextBatch() override {
    return client_.PullAgain(-1, StepClient::PulledAgain::kRowsAndTaken)
        .status();
  }

  void GradientReady(size_t variable) override {
    if (clipper_ != nullptr) clipper_->Ready(variable, [](size_t, bool) {});
  }

  void Finish() {
    if (clipper_ != nullptr) clipper_->EndPass([](size_t, bool) {});
  }

 private:
  StepClient& client_;
  GradientClipper* const clipper_;
};

}  // namespace

TrainingLoop::TrainingLoop(const Options& options, StepClient& client,
                           GradientSource& source, ProgressMeter& meter)
    : options_(options), client_(client), source_(source), meter_(meter) {}

absl::Status TrainingLoop::Run() {
  const absl::Status status =
      options_.mode == SyncMode::kStrict ? RunStrict() : RunCompatible();
  if (options_.pulls_last_values &&
      (status.ok() || absl::IsOutOfRange(status))) {
    PullLast();
  }
  return status;
}

void TrainingLoop::PullLast() {
  const bool strict = options_.mode == SyncMode::kStrict;
  // Training ended before this worker had a step.
  if (strict && pass_.step < 0) return;
  meter_.Begin(SpanKind::kPull, pass_.step);
  int64_t step = strict ? pass_.step : -1;
  while (true) {
    // An error is none of the job's, which has ended: the servers may be gone.
    const absl::StatusOr<int64_t> pulled = client_.Pull(step);
    if (!pulled.ok()) return;
    if (!strict || *pulled == step) {
      last_values_ = {*pulled, true};
      return;
    }
    step = *pulled;
  }
}

int TrainingLoop::Shares() const {
  if (options_.numbers > 0) return options_.numbers;
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
  const int largest = options_.numbers > 0 ? options_.numbers - 1
                                           : std::numeric_limits<int>::max();
  const bool is_block =
      std::has_single_bit(static_cast<unsigned>(token.block)) &&
      token.slot % token.block == 0 &&
      (token.block == 1 || token.block <= options_.numbers);
  if (token.step >= 0 && token.step <= limit && token.slot >= 0 &&
      token.slot <= largest && is_block) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "ps 0 sent a token for step ", token.step, ", share ", token.slot,
      ", block of ", token.block, "; the step must be in [0, ", limit,
      "] and the share in [0, ", largest,
      "], the first of a block: start a ps_server of this program's version"));
}

absl::Status TrainingLoop::Compute(int64_t index, GradientPass& pass) {
  meter_.Begin(SpanKind::kForward, pass_.step, 0,
               options_.numbers > 0 ? pass_.slot : -1);
  LOCKSTEP_RETURN_IF_ERROR(source_.Begin(index, pass));
  return Finish(pass);
}

absl::Status TrainingLoop::Finish(GradientPass& pass) {
  meter_.Begin(SpanKind::kBackward, pass_.step);
  LOCKSTEP_ASSIGN_OR_RETURN(const GradientResult result, source_.Finish(pass));
  if (Counts()) {
    meter_.Computed(pass_.step, result.loss, result.examples,
                    std::min(pass_.block, options_.numbers - pass_.slot));
    meter_.NonFinite(result.non_finite);
  }
  return absl::OkStatus();
}

absl::StatusOr<PushCounts> TrainingLoop::Push(int64_t attempt) {
  meter_.Begin(SpanKind::kPush, pass_.step, attempt);
  LOCKSTEP_ASSIGN_OR_RETURN(PushCounts counts, client_.Push(pass_, attempt));
  meter_.Duplicates(counts.duplicate);
  return counts;
}

absl::StatusOr<Token> TrainingLoop::NextToken(int64_t attempt) {
  meter_.Begin(SpanKind::kToken, pass_.step);
  LOCKSTEP_ASSIGN_OR_RETURN(Token token, client_.TakeToken(pass_, attempt));
  LOCKSTEP_RETURN_IF_ERROR(CheckToken(token));
  return token;
}

bool TrainingLoop::IsLeaving() const {
  return options_.leaving != nullptr && *options_.leaving;
}

// A pass from the step that ends training is begun before the chief has ended
// the job, and no step averages its gradient.
bool TrainingLoop::Counts() const {
  return options_.mode != SyncMode::kStrict || options_.train_steps == 0 ||
         pass_.step < options_.train_steps;
}

absl::Status TrainingLoop::RunStrict() {
  pass_.step = -1;  // before any step: the first token is free
  LOCKSTEP_ASSIGN_OR_RETURN(Token token, NextToken(0));
  while (token.kind != Token::Kind::kFinished) {
    if (IsLeaving()) return absl::CancelledError("this worker leaves");
    LOCKSTEP_ASSIGN_OR_RETURN(token, RunPasses(token));
  }
  if (token.step > 0) pass_.step = token.step;
  return absl::OkStatus();
}

absl::StatusOr<Token> TrainingLoop::RunPasses(Token token) {
  pass_.step = token.step;
  pass_.slot = token.slot;
  pass_.block = token.block;
  LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(pass_, BatchOf(pass_)));
  std::optional<StrictPass> pass;
  LOCKSTEP_RETURN_IF_ERROR(Enter(token, pass));
  // The step ended during the pull. 0, as nothing was pushed for the pass.
  if (!pass.has_value()) return NextToken(0);
  absl::Status computed = Compute(BatchOf(pass_), *pass);
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t attempt, Leave(computed, *pass));
    if (attempt == kDropped) return NextToken(0);
    if (!NextBeginsEarly(*pass)) return PushUntilToken(attempt);

    // Without backups each worker computes the same share of every step, so the
    // next token differs from this one in its step alone.
    PassId next = pass_;
    ++next.step;
    const absl::Status begun = BeginEarly(next, attempt);
    LOCKSTEP_ASSIGN_OR_RETURN(token, PushUntilToken(attempt));
    // A first half that failed (its values did not come, or a batch could not
    // be read) is thrown away; the pass begins anew with its token, and reports
    // an error that lasts.
    if (!begun.ok() || IsLeaving() || !Follows(token, next, attempt)) {
      return token;
    }
    LOCKSTEP_RETURN_IF_ERROR(Enter(token, pass));
    // RunPasses() pulls for this token again, finds its step over, and asks for
    // the next one.
    if (!pass.has_value()) return token;
    computed = Finish(*pass);
  }
}

absl::Status TrainingLoop::BeginEarly(const PassId& next, int64_t attempt) {
  // The answers bring values only for gradients that have been sent, and the
  // first half waits for those values.
  client_.SendRest(pass_, attempt);
  meter_.Begin(SpanKind::kForward, next.step);
  source_.PrepareEarly(next);
  EarlyPass early(client_, meter_, next.step);
  return source_.Begin(BatchOf(next), early);
}

absl::Status TrainingLoop::Enter(const Token& token,
                                 std::optional<StrictPass>& pass) {
  pass.reset();
  meter_.Begin(SpanKind::kPull, token.step);
  LOCKSTEP_ASSIGN_OR_RETURN(int64_t pulled, client_.Pull(token.step));
  // The step went on while this worker pulled; a pass for it would be stale.
  if (pulled != token.step) return absl::OkStatus();
  pass_.step = token.step;
  ++pass_.number;
  // The job may end, and cancel this pass, before the program has taken it.
  if (options_.pulls_last_values && !Counts()) {
    last_values_ = {pulled, false};
  }
  // A token selects workers only where every worker's gradient counts.
  const bool watch =
      token.selected_attempt == 0 &&
      (options_.numbers > 0 ||
       options_.total_num_replicas >= options_.replicas_to_aggregate);
  pass.emplace(client_, pass_,
               StrictPass::Options{.selected_attempt = token.selected_attempt,
                                   .watch = watch,
                                   .shared = options_.numbers > 0,
                                   .clipper = options_.clipper,
                                   .meter = &meter_});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TrainingLoop::Leave(const absl::Status& computed,
                                            StrictPass& pass) {
  if (absl::IsAborted(computed) && pass.dropped()) {
    if (Counts()) meter_.Dropped();
    return kDropped;
  }
  // The announcement's error comes first: `computed` is only its consequence
  // (kAborted from CheckWanted()).
  LOCKSTEP_RETURN_IF_ERROR(pass.status());
  LOCKSTEP_RETURN_IF_ERROR(computed);
  LOCKSTEP_RETURN_IF_ERROR(pass.Finish());
  return pass.attempt();
}

bool TrainingLoop::NextBeginsEarly(const StrictPass& pass) const {
  const bool is_last =
      options_.train_steps > 0 && pass_.step + 1 >= options_.train_steps;
  return pass.all_workers_count() && client_.PushesBringValues() &&
         source_.MayBeginEarly() && !is_last && !IsLeaving();
}

absl::StatusOr<Token> TrainingLoop::PushUntilToken(int64_t attempt) {
  bool counted = false;
  Token token;
  while (true) {
    if (attempt > 0) {
      LOCKSTEP_ASSIGN_OR_RETURN(PushCounts counts, Push(attempt));
      // Duplicates count: an earlier call of the same push was the one that was
      // added.
      counted = counts.superseded == 0 && counts.stale == 0;
      // In shared work another worker may have pushed the number before; an
      // earlier call of this push is seldom the one that was added.
      if (options_.numbers > 0) counted = counted && counts.accepted > 0;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(token, NextToken(attempt));
    if (token.kind != Token::Kind::kRedo) break;
    attempt = token.attempt;
  }
  if (!Counts()) return token;
  // Another attempt may have made the step, without this gradient.
  if (counted && !token.not_needed) {
    meter_.Accepted();
  } else {
    meter_.Stale();
  }
  return token;
}

absl::Status TrainingLoop::RunCompatible() {
  // Batches are numbered from the step at which the worker joined, then counted
  // by its own passes: unlike in strict mode, they do not follow the step.
  pass_.step = options_.first_step;
  for (int64_t index = options_.first_step;; ++index) {
    LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(pass_, index));
    meter_.Begin(SpanKind::kPull, -1);
    LOCKSTEP_RETURN_IF_ERROR(client_.Pull(-1).status());
    CompatiblePass pass(client_, options_.clipper);
    LOCKSTEP_RETURN_IF_ERROR(Compute(index, pass));
    pass.Finish();
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

}  // namespace lockstep::worker
