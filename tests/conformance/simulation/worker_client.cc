#include "tests/conformance/simulation/worker_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

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
                           uint64_t incarnation)
    : values(job.promises.num_parts()),
      gradients(values.size()),
      job_(job),
      waiting_(waiting),
      process_(process),
      worker_(worker),
      incarnation_(incarnation),
      held_(values.size()),
      ready_(values.size()),
      absent_(values.size()) {}

void WorkerClient::SendPull(int part, int64_t step,
                            const std::shared_ptr<PullState>& pull) {
  const PlannedPart& planned = job_.plan.parts[part];
  const int holder = job_.plan.mirrored ? worker_ : planned.server;
  job_.world.Call<PullReply>(
      process_, job_.server_place(holder),
      [&job = job_, pass = ToPass({}), index = planned.index, holder,
       step](const World::Reply<PullReply>& reply) {
        reply(job.servers[holder]->Pull(pass, index, 1, step));
      },
      [this, part, step, pull](const absl::StatusOr<PullReply>& answer) {
        if (Transient(answer.status()) && !cancelled_) {
          job_.world.AfterFor(process_, kRetryPause, [this, part, step, pull] {
            SendPull(part, step, pull);
          });
          return;
        }
        --pull->open;
        pull->status.Update(answer.status());
        if (answer.ok()) {
          values[part] = answer->values[0];
          held_[part] = {answer->step, 0};
        }
        waiting_.Wake();
      });
}

absl::StatusOr<int64_t> WorkerClient::Pull(int64_t step) {
  while (true) {
    auto pull = std::make_shared<PullState>();
    for (size_t part = 0; part < values.size(); ++part) {
      if (held_[part].step == step && held_[part].attempt == 0) continue;
      ++pull->open;
      SendPull(static_cast<int>(part), step, pull);
    }
    waiting_.Until([this, &pull] { return pull->open == 0 || cancelled_; });
    if (cancelled_) return absl::CancelledError("the membership is over");
    LOCKSTEP_RETURN_IF_ERROR(pull->status);
    int64_t newest = step;
    for (const Held& held : held_) newest = std::max(newest, held.step);
    if (newest == step) return newest;
    step = newest;
  }
}

void WorkerClient::BeginPass(const PassId& pass, PassKind kind, bool watch) {
  DropPush();
  token_early_ =
      kind != PassKind::kShared || job_.Has(PlantedBug::kDoneBeforePushed);
  std::fill(ready_.begin(), ready_.end(), false);
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

void WorkerClient::GradientReady(size_t part) {
  ready_[part] = true;
  if (push_ && !push_->sent[part]) SendPush(static_cast<int>(part), push_);
}

void WorkerClient::BeginPush(const PassId& pass, int64_t attempt) {
  DropPush();
  push_ = std::make_shared<ActivePush>();
  push_->pass = pass;
  push_->attempt = attempt;
  push_->sent.resize(values.size());
  push_->answered.resize(values.size());
  for (size_t part = 0; part < values.size(); ++part) {
    if (ready_[part]) SendPush(static_cast<int>(part), push_);
  }
}

void WorkerClient::SendPush(int part, const std::shared_ptr<ActivePush>& push) {
  if (!push->sent[part]) ++push->open;
  push->sent[part] = true;
  const PlannedPart& planned = job_.plan.parts[part];
  lockstep::server::Push request{ToPass(push->pass),
                                 push->attempt,
                                 planned.index,
                                 {},
                                 /*return_values=*/true};
  request.gradients.push_back(absent_[part] ? server::PartGradient()
                                            : GradientOf(gradients[part]));
  request.gradients.back().absent = absent_[part];
  job_.world.Call<PushReply>(
      process_, job_.server_place(planned.server),
      [&job = job_, request = std::move(request),
       server = planned.server](const World::Reply<PushReply>& reply) {
        job.servers[server]->AddPush(request, reply);
      },
      [this, part, push](const absl::StatusOr<PushReply>& answer) {
        TakePush(part, push, answer);
      });
}

void WorkerClient::TakePush(int part, const std::shared_ptr<ActivePush>& push,
                            const absl::StatusOr<PushReply>& answer) {
  if (Transient(answer.status()) && !cancelled_) {
    job_.world.AfterFor(process_, kRetryPause,
                        [this, part, push] { SendPush(part, push); });
    return;
  }
  --push->open;
  push->answered[part] = true;
  push->status.Update(answer.status());
  if (job_.options.hasty) AskAhead(part, push->pass.step + 1);
  if (answer.ok()) {
    if (!answer->values.empty()) {
      values[part] = answer->values[0];
      held_[part] = {push->pass.step + 1, push->attempt};
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

void WorkerClient::AskAhead(int part, int64_t step) {
  const PlannedPart& planned = job_.plan.parts[part];
  job_.world.Call<PullReply>(
      process_, job_.server_place(planned.server),
      [&job = job_, pass = ToPass({}), index = planned.index,
       server = planned.server, step](const World::Reply<PullReply>& reply) {
        reply(job.servers[server]->Pull(pass, index, 1, step));
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
  if (token_early_) SendTakeToken(pass, attempt);
  if (!begun) BeginPush(pass, attempt);
  push_->rest_sent = true;
  for (size_t part = 0; part < values.size(); ++part) {
    if (!push_->sent[part]) GradientReady(part);
  }
}

absl::Status WorkerClient::AwaitValues(size_t first, size_t count) {
  if (job_.Has(PlantedBug::kValuesAreNotAwaited)) return absl::OkStatus();
  for (size_t part = first; part < first + count; ++part) {
    waiting_.Until([this, part] {
      return !push_ || push_->answered[part] || !push_->status.ok() ||
             cancelled_;
    });
    if (!push_ || held_[part].step != push_->pass.step + 1 ||
        held_[part].attempt != push_->attempt) {
      return absl::AbortedError("the push brings no such values");
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
        SettleHeld(answer->step, answer->attempt);
        return worker::Token{worker::Token::Kind::kToken,
                             answer->step,
                             answer->slot,
                             answer->attempt,
                             answer->selected_attempt,
                             answer->not_needed};
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

void WorkerClient::SettleHeld(int64_t step, int64_t attempt) {
  for (Held& held : held_) {
    if (held.attempt == 0) continue;
    const bool committed = held.step == step && held.attempt == attempt;
    held = committed ? Held{step, 0} : Held();
  }
}

}  // namespace lockstep::simulation
