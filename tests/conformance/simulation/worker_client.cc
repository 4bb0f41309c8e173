#include "tests/conformance/simulation/worker_client.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/passing_error.h"
#include "common/base/status_macros.h"
#include "worker/client/exchange/last_answers.h"
#include "worker/client/exchange/retry_pause.h"
#include "worker/client/exchange/token_answer.h"

namespace lockstep::simulation {
namespace {

// As the service encodes it, and the product's client decodes it.
worker::TokenAnswer::Outcome OutcomeOf(const server::Gate::Answer& answer) {
  switch (answer.outcome) {
    case server::Gate::Outcome::kToken:
      return worker::TokenAnswer::Outcome::kToken;
    case server::Gate::Outcome::kRedo:
      return worker::TokenAnswer::Outcome::kRedo;
    case server::Gate::Outcome::kFinished:
      return worker::TokenAnswer::Outcome::kFinished;
    case server::Gate::Outcome::kCancelled:
      break;
  }
  return worker::TokenAnswer::Outcome::kWait;
}

worker::TokenAnswer AnswerFrom(const server::Gate::Answer& answer) {
  return {
      OutcomeOf(answer),       answer.step,       answer.slot, answer.attempt,
      answer.selected_attempt, answer.not_needed, answer.block};
}

server::PartGradient GradientOf(float value) {
  auto owner = std::make_shared<float>(value);
  return {{{reinterpret_cast<const std::byte*>(owner.get()), sizeof(float)}},
          owner};
}

}  // namespace

WorkerClient::WorkerClient(Job& job, Waiting& waiting, int process, int worker,
                           uint64_t incarnation, const Plan& plan)
    : job_(job),
      waiting_(waiting),
      process_(process),
      worker_(worker),
      incarnation_(incarnation),
      plan_(plan),
      memory_(worker::ParameterMemory::Make(
                  job.variables, worker::ParameterMemory::Gradients::kPrivate)
                  .value()),
      chunks_(plan_, memory_, job.num_servers(), sizeof(float)),
      sends_(chunks_) {}

void WorkerClient::Pump(const std::shared_ptr<Transfer>& transfer, int server) {
  while (!cancelled_) {
    const std::optional<size_t> chunk =
        transfer->calls.Next(server, job_.world.Now());
    if (!chunk.has_value()) return;
    transfer->send(transfer, {server, *chunk});
  }
}

void WorkerClient::Done(const std::shared_ptr<Transfer>& transfer,
                        const Chunk& chunk, const absl::Status& status) {
  const absl::Time now = job_.world.Now();
  if (transfer->calls.Done(chunk.server, chunk.chunk, status, now)) {
    Pump(transfer, chunk.server);
  } else if (IsPassing(status)) {
    job_.world.AfterFor(
        process_, transfer->calls.retry_at(chunk.server) - now,
        [this, transfer, server = chunk.server] { Pump(transfer, server); });
  }
  waiting_.Wake();
}

absl::Status WorkerClient::Finish(const Transfer& transfer) {
  waiting_.Until([&] { return transfer.calls.IsOver() || cancelled_; });
  if (cancelled_) return absl::CancelledError("the membership is over");
  return transfer.calls.failure();
}

bool WorkerClient::Take(const Chunk& chunk, const LentValue& lent) {
  const int part = PartOf(chunk);
  if (lent.memory == nullptr) {
    value(part) = lent.value;
    return true;
  }
  absl::Status copied = lent.memory->Copy(lent.place, memory_.value(part));
  // All servers are one process here, so that MappedValues sees none end.
  if (copied.ok() && !job_.world.IsAlive(lent.process)) {
    copied = absl::AbortedError("the server has ended");
  }
  if (!copied.ok() && !absl::IsAborted(copied)) {
    job_.promises.Break(
        absl::StrCat("a value cannot be copied: ", copied.ToString()));
  }
  if (!copied.ok()) ++job_.tally.late_copies;
  return copied.ok() || job_.Has(PlantedBug::kOldCopyCounts);
}

void WorkerClient::SendPull(const Chunk& chunk, int64_t step,
                            const std::shared_ptr<Transfer>& pull, bool share) {
  const int index = chunks_.chunk(chunk.server, chunk.chunk).first_part;
  const int holder = plan_.mirrored ? worker_ : chunk.server;
  job_.world.Call<PullReply>(
      process_, job_.server_place(holder),
      [&job = job_, pass = ToPass({}), index, holder, step,
       share](const World::Reply<PullReply>& reply) {
        job.servers[holder]->Pull({pass, index, step, share}, reply);
      },
      [this, chunk, step, pull](const absl::StatusOr<PullReply>& answer) {
        if (answer.ok()) {
          if (!Take(chunk, answer->values[0])) {
            return SendPull(chunk, step, pull, /*share=*/false);
          }
          chunks_.Hold(chunk.server, chunk.chunk, {answer->step, 0});
        }
        Done(pull, chunk, answer.status());
      });
}

absl::StatusOr<int64_t> WorkerClient::Pull(int64_t step) {
  const auto pull = std::make_shared<Transfer>(Transfer{
      {{}, chunks_.Missing(step)},
      [this, step](const std::shared_ptr<Transfer>& transfer,
                   const Chunk& chunk) { SendPull(chunk, step, transfer); }});
  for (int server = 0; server < job_.num_servers(); ++server) {
    Pump(pull, server);
  }
  LOCKSTEP_RETURN_IF_ERROR(Finish(*pull));
  return chunks_.Newest(step);
}

void WorkerClient::BeginPass(const PassId& pass, PassKind kind, bool watch) {
  DropPush();
  sends_.BeginPass(kind);
  if (!watch) return;
  EndWatch();
  watch_ = std::make_shared<Watch>();
  AskAboutStep(pass, watch_);
}

void WorkerClient::AskAboutStep(const PassId& pass,
                                const std::shared_ptr<Watch>& watch) {
  job_.world.Call<server::Gate::Answer>(
      process_, job_.server_place(0),
      [&job = job_,
       of = ToPass(pass)](const World::Reply<server::Gate::Answer>& reply) {
        job.servers[0]->TakeToken(of, 0, /*computing=*/true, reply);
      },
      [this, pass, watch](const absl::StatusOr<server::Gate::Answer>& answer) {
        if (!answer.ok()) return;
        switch (worker::WatchResultOf(OutcomeOf(*answer),
                                      watch->ended || cancelled_)) {
          case worker::WatchResult::kStepIsOver:
            watch->over = true;
            break;
          case worker::WatchResult::kAskAgain:
            AskAboutStep(pass, watch);
            break;
          case worker::WatchResult::kEnd:
            break;
        }
      });
}

void WorkerClient::GradientReady(size_t variable) {
  for (const Chunk& chunk : sends_.MarkReady(variable)) Add(chunk);
}

void WorkerClient::Add(const Chunk& chunk) {
  push_->calls.Add(chunk.server, chunk.chunk);
  Pump(push_, chunk.server);
}

void WorkerClient::BeginPush(const worker::PushId& id) {
  DropPush();
  push_ = std::make_shared<ActivePush>(
      id, job_.num_servers(),
      [this](const std::shared_ptr<Transfer>& transfer, const Chunk& chunk) {
        SendPush(chunk, std::static_pointer_cast<ActivePush>(transfer));
      });
  const auto& order = sends_.BeginPush(id);
  for (int server = 0; server < job_.num_servers(); ++server) {
    for (const size_t chunk : order[server]) Add({server, chunk});
  }
}

void WorkerClient::SendPush(const Chunk& chunk,
                            const std::shared_ptr<ActivePush>& push) {
  const int part = PartOf(chunk);
  const worker::PushId& id = push->answers.push();
  const bool absent = sends_.absent()[part] != 0;
  lockstep::server::Push request{
      ToPass(id.pass),
      id.attempt,
      chunks_.chunk(chunk.server, chunk.chunk).first_part,
      {},
      /*return_values=*/id.BringsValues()};
  request.gradients.push_back(absent ? server::PartGradient()
                                     : GradientOf(gradient(part)));
  request.gradients.back().absent = absent;
  job_.world.Call<PushReply>(
      process_, job_.server_place(chunk.server),
      [&job = job_, request = std::move(request),
       server = chunk.server](const World::Reply<PushReply>& reply) {
        job.servers[server]->AddPush(request, reply);
      },
      [this, chunk, push](const absl::StatusOr<PushReply>& answer) {
        if (answer.ok() && !push->given_up) {
          TakePush(chunk, *answer, push->answers);
        }
        Done(push, chunk, answer.status());
      });
}

void WorkerClient::TakePush(const Chunk& chunk, const PushReply& answer,
                            worker::PushAnswers& answers) {
  const worker::PushId& id = answers.push();
  if (job_.options.hasty) AskAhead(chunk, id.pass.step + 1);
  if (!answer.values.empty() && Take(chunk, answer.values[0])) {
    chunks_.Hold(chunk.server, chunk.chunk, id.Values());
  }
  answers.Count(answer.outcomes[0]);
  answers.MarkThrough(chunk);
}

void WorkerClient::AskAhead(const Chunk& chunk, int64_t step) {
  const Part& planned = plan_.parts[PartOf(chunk)];
  job_.world.Call<PullReply>(
      process_, job_.server_place(planned.server),
      [&job = job_, pass = ToPass({}), index = planned.index,
       server = planned.server, step](const World::Reply<PullReply>& reply) {
        job.servers[server]->Pull({pass, index, step, /*share=*/false}, reply);
      },
      [](const absl::StatusOr<PullReply>&) {});
}

void WorkerClient::DropPush() {
  if (!push_) return;
  Finish(*push_).IgnoreError();
  push_.reset();
  sends_.EndPush();
}

void WorkerClient::BeginPush(const PassId& pass, int64_t attempt) {
  BeginPush({pass, attempt});
}

void WorkerClient::SendRest(const PassId& pass, int64_t attempt) {
  SendRest({pass, attempt});
}

void WorkerClient::SendRest(const worker::PushId& id) {
  const worker::PassSends::Rest rest = sends_.RestOf(id);
  if (!rest.sends_chunks) return;
  const bool planted =
      job_.Has(PlantedBug::kDoneBeforePushed) && id.attempt > 0;
  if (rest.sends_token_call || planted) {
    EndWatch();
    early_call_.Keep(id, SendTakeToken(id));
  }
  if (rest.begins_push) BeginPush(id);
  for (const Chunk& chunk : sends_.MarkRest()) Add(chunk);
}

absl::Status WorkerClient::AwaitValues(size_t first, size_t count) {
  using Values = worker::PushAnswers::Values;
  if (job_.Has(PlantedBug::kValuesAreNotAwaited)) return absl::OkStatus();
  if (!push_) return absl::AbortedError("no push is under way");
  worker::PassSends::Chunks chunks = sends_.ChunksOf(first, count);
  const auto values = [&] { return push_->answers.ValuesOf(chunks, chunks_); };
  waiting_.Until([&] {
    return values() != Values::kAwaited || push_->calls.IsOver() || cancelled_;
  });
  if (values() == Values::kHeld) return absl::OkStatus();
  return absl::AbortedError("the push has not brought all of the values");
}

bool WorkerClient::TrainingIsOver(const worker::PushId& after) const {
  const TokenCall* call = early_call_.Find(after);
  return call != nullptr && call->has_value() && (*call)->ok() &&
         worker::EndsTraining(OutcomeOf(***call));
}

bool WorkerClient::AwaitAnswers(const worker::PushId& id) {
  const auto ended = [&] { return push_->calls.IsOver() || cancelled_; };
  worker::LastAnswers last;
  waiting_.Until([&] { return ended() || TrainingIsOver(id); });
  while (!ended()) {
    if (last.GivesUp(TrainingIsOver(id), job_.world.Now())) {
      push_->given_up = true;
      ++job_.tally.given_up;
      return false;
    }
    waiting_.UntilOrFor(worker::LastAnswers::kLongest, ended);
  }
  return true;
}

absl::StatusOr<worker::PushCounts> WorkerClient::Push(const PassId& pass,
                                                      int64_t attempt) {
  SendRest({pass, attempt});
  if (!AwaitAnswers({pass, attempt})) return worker::LastAnswers::GivenUp();
  const absl::Status status = Finish(*push_);
  const std::shared_ptr<ActivePush> push = std::move(push_);
  sends_.EndPush();
  LOCKSTEP_RETURN_IF_ERROR(status);
  const worker::PushCounts& counts = push->answers.counts();
  if (job_.is_compatible() && counts.accepted + counts.duplicate > 0) {
    job_.compatible.OnClaim(ToPass(pass));
  }
  return counts;
}

template <typename Answer>
absl::StatusOr<Answer> WorkerClient::UntilAnswered(
    const std::function<absl::StatusOr<Answer>()>& attempt) {
  worker::RetryPause pause;
  while (!cancelled_) {
    absl::StatusOr<Answer> answer = attempt();
    if (answer.ok()) return answer;
    const std::optional<absl::Duration> again = pause.After(answer.status());
    if (!again.has_value()) return answer;
    waiting_.UntilOrFor(*again, [this] { return cancelled_; });
  }
  return absl::CancelledError("the membership is over");
}

absl::StatusOr<worker::Announcement> WorkerClient::Announce(
    const PassId& pass) {
  using Announced = server::Gate::Announced;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Announced answer, UntilAnswered<Announced>([&] {
        return waiting_.Call<Announced>(
            job_.server_place(0),
            [&job = job_,
             of = ToPass(pass)](const World::Reply<Announced>& reply) {
              reply(job.servers[0]->Announce(of));
            },
            &cancelled_);
      }));
  return worker::Announcement{
      static_cast<worker::Announcement::Decision>(answer.decision),
      answer.attempt};
}

std::shared_ptr<WorkerClient::TokenCall> WorkerClient::SendTakeToken(
    const worker::PushId& after) {
  auto call = std::make_shared<TokenCall>();
  job_.world.Call<server::Gate::Answer>(
      process_, job_.server_place(0),
      [&job = job_, of = ToPass(after.pass), attempt = after.attempt](
          const World::Reply<server::Gate::Answer>& reply) {
        job.servers[0]->TakeToken(of, attempt, /*computing=*/false, reply);
      },
      [this, call](const absl::StatusOr<server::Gate::Answer>& came) {
        *call = came;
        waiting_.Wake();
      });
  return call;
}

absl::StatusOr<worker::Token> WorkerClient::TakeToken(const PassId& pass,
                                                      int64_t attempt) {
  EndWatch();
  const worker::PushId after{pass, attempt};
  std::shared_ptr<TokenCall> call = early_call_.Take(after);
  const auto ask = [&]() -> absl::StatusOr<server::Gate::Answer> {
    if (call == nullptr) call = SendTakeToken(after);
    waiting_.Until([&] { return call->has_value() || cancelled_; });
    if (cancelled_) return absl::CancelledError("the membership is over");
    return **std::exchange(call, nullptr);
  };
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const server::Gate::Answer answer,
                              UntilAnswered<server::Gate::Answer>(ask));
    const std::optional<worker::Token> token =
        worker::TokenOf(AnswerFrom(answer));
    if (!token.has_value()) continue;
    worker::SettleValues(*token, chunks_);
    return *token;
  }
}

}  // namespace lockstep::simulation
