#include "tests/conformance/simulation/worker_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

bool Transient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
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
      ready_(chunks_.chunks()),
      absent_(job.variables.size()) {}

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
  if (!copied.ok()) ++job_.late_copies;
  return copied.ok() || job_.Has(PlantedBug::kOldCopyCounts);
}

void WorkerClient::SendPull(const Chunk& chunk, int64_t step,
                            const std::shared_ptr<PullState>& pull,
                            bool share) {
  const int index = chunks_.chunk(chunk.server, chunk.chunk).first_part;
  const int holder = plan_.mirrored ? worker_ : chunk.server;
  job_.world.Call<PullReply>(
      process_, job_.server_place(holder),
      [&job = job_, pass = ToPass({}), index, holder, step,
       share](const World::Reply<PullReply>& reply) {
        reply(job.servers[holder]->Pull(pass, index, 1, step, share));
      },
      [this, chunk, step, pull,
       share](const absl::StatusOr<PullReply>& answer) {
        if (Transient(answer.status()) && !cancelled_) {
          job_.world.AfterFor(process_, kRetryPause, [=, this] {
            SendPull(chunk, step, pull, share);
          });
          return;
        }
        if (answer.ok() && !Take(chunk, answer->values[0])) {
          return SendPull(chunk, step, pull, /*share=*/false);
        }
        --pull->open;
        pull->status.Update(answer.status());
        if (answer.ok()) {
          chunks_.Hold(chunk.server, chunk.chunk, {answer->step, 0});
        }
        waiting_.Wake();
      });
}

absl::StatusOr<int64_t> WorkerClient::Pull(int64_t step) {
  const bool one_step = step >= 0;
  while (true) {
    auto pull = std::make_shared<PullState>();
    const worker::HeldChunks::Lists missing =
        chunks_.Missing(one_step ? std::optional(step) : std::nullopt);
    for (size_t server = 0; server < missing.size(); ++server) {
      for (const size_t chunk : missing[server]) {
        ++pull->open;
        SendPull({static_cast<int>(server), chunk}, step, pull);
      }
    }
    waiting_.Until([this, &pull] { return pull->open == 0 || cancelled_; });
    if (cancelled_) return absl::CancelledError("the membership is over");
    LOCKSTEP_RETURN_IF_ERROR(pull->status);
    const int64_t newest = chunks_.Newest(step);
    if (!one_step || newest == step) return newest;
    step = newest;
  }
}

void WorkerClient::BeginPass(const PassId& pass, PassKind kind, bool watch) {
  DropPush();
  token_early_ =
      kind != PassKind::kShared || job_.Has(PlantedBug::kDoneBeforePushed);
  ready_.Reset(kind == PassKind::kEverybodyCounts
                   ? worker::ReadyChunks::Order::kThirdsLast
                   : worker::ReadyChunks::Order::kAsReady);
  std::fill(absent_.begin(), absent_.end(), false);
  if (watch_) watch_->ended = true;
  watch_.reset();
  if (!watch) return;
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
        if (answer->outcome == server::Gate::Outcome::kToken ||
            answer->outcome == server::Gate::Outcome::kFinished) {
          watch->over = true;
        } else if (!watch->ended && !cancelled_) {
          AskAboutStep(pass, watch);
        }
      });
}

void WorkerClient::GradientReady(size_t variable) {
  for (const Chunk& chunk : ready_.MarkReady(variable)) {
    if (push_) StartPush(chunk);
  }
}

void WorkerClient::BeginPush(const PassId& pass, int64_t attempt) {
  DropPush();
  push_ = std::make_shared<ActivePush>();
  push_->pass = pass;
  push_->attempt = attempt;
  push_->through.resize(job_.num_servers());
  if (attempt > 1) ready_.KeepNothingBack();
  for (int server = 0; server < job_.num_servers(); ++server) {
    for (const size_t chunk : ready_.order()[server]) {
      StartPush({server, chunk});
    }
  }
}

void WorkerClient::SendPush(const Chunk& chunk,
                            const std::shared_ptr<ActivePush>& push) {
  const int part = PartOf(chunk);
  lockstep::server::Push request{
      ToPass(push->pass),
      push->attempt,
      chunks_.chunk(chunk.server, chunk.chunk).first_part,
      {},
      /*return_values=*/push->attempt > 0};
  request.gradients.push_back(absent_[part] ? server::PartGradient()
                                            : GradientOf(gradient(part)));
  request.gradients.back().absent = absent_[part];
  job_.world.Call<PushReply>(
      process_, job_.server_place(chunk.server),
      [&job = job_, request = std::move(request),
       server = chunk.server](const World::Reply<PushReply>& reply) {
        job.servers[server]->AddPush(request, reply);
      },
      [this, chunk, push](const absl::StatusOr<PushReply>& answer) {
        TakePush(chunk, push, answer);
      });
}

void WorkerClient::TakePush(const Chunk& chunk,
                            const std::shared_ptr<ActivePush>& push,
                            const absl::StatusOr<PushReply>& answer) {
  if (Transient(answer.status()) && !cancelled_) {
    job_.world.AfterFor(process_, kRetryPause,
                        [this, chunk, push] { SendPush(chunk, push); });
    return;
  }
  --push->open;
  push->through[chunk.server].insert(chunk.chunk);
  push->status.Update(answer.status());
  if (job_.options.hasty) AskAhead(chunk, push->pass.step + 1);
  if (answer.ok()) {
    if (!answer->values.empty() && Take(chunk, answer->values[0])) {
      chunks_.Hold(chunk.server, chunk.chunk,
                   {push->pass.step + 1, push->attempt});
    }
    switch (answer->outcomes[0]) {
      case server::PushOutcome::kAccepted:
        ++push->counts.accepted;
        break;
      case server::PushOutcome::kStale:
        ++push->counts.stale;
        break;
      case server::PushOutcome::kDuplicate:
        ++push->counts.duplicate;
        break;
      case server::PushOutcome::kSuperseded:
        ++push->counts.superseded;
        break;
    }
  }
  waiting_.Wake();
}

void WorkerClient::AskAhead(const Chunk& chunk, int64_t step) {
  const Part& planned = plan_.parts[PartOf(chunk)];
  job_.world.Call<PullReply>(
      process_, job_.server_place(planned.server),
      [&job = job_, pass = ToPass({}), index = planned.index,
       server = planned.server, step](const World::Reply<PullReply>& reply) {
        reply(job.servers[server]->Pull(pass, index, 1, step,
                                        /*share=*/false));
      },
      [](const absl::StatusOr<PullReply>&) {});
}

void WorkerClient::DropPush() {
  if (!push_) return;
  waiting_.Until([this] { return push_->open == 0 || cancelled_; });
  push_.reset();
}

void WorkerClient::SendRest(const PassId& pass, int64_t attempt) {
  const bool begun = push_ && push_->pass == pass && push_->attempt == attempt;
  if (begun && push_->rest_sent) return;
  if (attempt > 0 && token_early_) SendTakeToken(pass, attempt);
  if (!begun) BeginPush(pass, attempt);
  push_->rest_sent = true;
  for (const Chunk& chunk : ready_.MarkRest()) StartPush(chunk);
}

absl::Status WorkerClient::AwaitValues(size_t first, size_t count) {
  if (job_.Has(PlantedBug::kValuesAreNotAwaited)) return absl::OkStatus();
  for (size_t variable = first; variable < first + count; ++variable) {
    for (const Chunk& chunk : ready_.ChunksOf(variable)) {
      waiting_.Until([this, &chunk] {
        return !push_ || push_->through[chunk.server].contains(chunk.chunk) ||
               !push_->status.ok() || cancelled_;
      });
      const auto& held = chunks_.held(chunk.server, chunk.chunk);
      if (!push_ || held.step != push_->pass.step + 1 ||
          held.attempt != push_->attempt) {
        return absl::AbortedError("the push brings no such values");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<worker::PushCounts> WorkerClient::Push(const PassId& pass,
                                                      int64_t attempt) {
  SendRest(pass, attempt);
  waiting_.Until(
      [this] { return push_->open == 0 || !push_->status.ok() || cancelled_; });
  if (cancelled_) return absl::CancelledError("the membership is over");
  const std::shared_ptr<ActivePush> push = std::move(push_);
  LOCKSTEP_RETURN_IF_ERROR(push->status);
  if (job_.is_compatible() &&
      push->counts.accepted + push->counts.duplicate > 0) {
    job_.compatible.OnClaim(ToPass(pass));
  }
  return push->counts;
}

absl::StatusOr<worker::Announcement> WorkerClient::Announce(
    const PassId& pass) {
  while (!cancelled_) {
    const auto answer = waiting_.Call<server::Gate::Announced>(
        job_.server_place(0),
        [&job = job_, of = ToPass(pass)](
            const World::Reply<server::Gate::Announced>& reply) {
          reply(job.servers[0]->Announce(of));
        },
        &cancelled_);
    if (answer.ok()) {
      return worker::Announcement{
          static_cast<worker::Announcement::Decision>(answer->decision),
          answer->attempt};
    }
    if (!Transient(answer.status())) return answer.status();
    waiting_.Sleep(kRetryPause);
  }
  return absl::CancelledError("the membership is over");
}

void WorkerClient::SendTakeToken(const PassId& pass, int64_t attempt) {
  if (watch_) watch_->ended = true;
  early_wait_ = {
      pass, attempt,
      std::make_shared<std::optional<absl::StatusOr<server::Gate::Answer>>>()};
  job_.world.Call<server::Gate::Answer>(
      process_, job_.server_place(0),
      [&job = job_, of = ToPass(pass),
       attempt](const World::Reply<server::Gate::Answer>& reply) {
        job.servers[0]->TakeToken(of, attempt, /*computing=*/false, reply);
      },
      [this, answer = early_wait_->answer](
          const absl::StatusOr<server::Gate::Answer>& came) {
        *answer = came;
        waiting_.Wake();
      });
}

absl::StatusOr<server::Gate::Answer> WorkerClient::WaitForToken(
    const PassId& pass, int64_t attempt) {
  if (!early_wait_ || !(early_wait_->pass == pass) ||
      early_wait_->attempt != attempt) {
    SendTakeToken(pass, attempt);
  }
  const auto answer = early_wait_->answer;
  waiting_.Until([&] { return answer->has_value() || cancelled_; });
  early_wait_.reset();
  if (cancelled_) return absl::CancelledError("the membership is over");
  return **answer;
}

absl::StatusOr<worker::Token> WorkerClient::TakeToken(const PassId& pass,
                                                      int64_t attempt) {
  while (true) {
    const auto answer = WaitForToken(pass, attempt);
    if (!answer.ok()) {
      if (!Transient(answer.status())) return answer.status();
      waiting_.Sleep(kRetryPause);
      continue;
    }
    switch (answer->outcome) {
      case server::Gate::Outcome::kToken:
        chunks_.Settle(answer->step, answer->attempt);
        return worker::Token{worker::Token::Kind::kToken,
                             answer->step,
                             answer->slot,
                             answer->attempt,
                             answer->selected_attempt,
                             answer->not_needed,
                             answer->block};
      case server::Gate::Outcome::kRedo:
        return worker::Token{worker::Token::Kind::kRedo, 0, 0, answer->attempt};
      case server::Gate::Outcome::kFinished:
        return worker::Token{.kind = worker::Token::Kind::kFinished,
                             .not_needed = answer->not_needed};
      case server::Gate::Outcome::kCancelled:
        break;
    }
  }
}

}  // namespace lockstep::simulation
