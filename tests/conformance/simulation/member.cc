#include "tests/conformance/simulation/member.h"

#include <algorithm>

#include "common/program/main_support.h"
#include "common/wire/status_detail.h"
#include "tests/conformance/simulation/chief_process.h"

namespace lockstep::simulation {
void Member::Join() {
  joined_ = false;
  left_ = false;
  membership_.BeginRegistration(job_.world.Now());
  DrawIncarnation();
  Register();
}

void Member::OnNewerIncarnation(uint64_t newest) {
  membership_.OnNewerIncarnation(newest);
}

void Member::DrawIncarnation() {
  job_.last_incarnation =
      std::max(job_.last_incarnation, membership_.newest_known()) + 1;
  membership_.set_incarnation(job_.last_incarnation);
}

void Member::Register() {
  const TaskId task = job_.TaskAt(place_);
  const uint64_t incarnation = membership_.incarnation();
  job_.world.Call<chief::MemberAnswers::Registered>(
      process_, job_.chief_place(),
      [task, incarnation, again = membership_.was_member(),
       &job = job_](World::Reply<chief::MemberAnswers::Registered> reply) {
        reply(job.ServingChief().Register(task, incarnation, again));
      },
      [this, incarnation](
          const absl::StatusOr<chief::MemberAnswers::Registered>& answer) {
        if (IsOf(incarnation)) OnRegisterAnswer(answer);
      });
}

void Member::OnRegisterAnswer(
    const absl::StatusOr<chief::MemberAnswers::Registered>& answer) {
  using Next = Membership::Next;
  const Next next = membership_.OnRegisterAnswer(
      answer.status(), NewestIncarnationOf(answer.status()), job_.world.Now());
  if (next == Next::kMember && !answer->taken_out.empty()) {
    return on_end_(End::kRefused);
  }
  if (next == Next::kMember) {
    joined_ = true;
    told_ = answer->job;
    membership_.BeginHeartbeats(job_.id, job_.config.max_wait,
                                job_.world.Now());
    Beat();
    return on_joined_();
  }
  if (next == Next::kTryAgain || next == Next::kTryWithNewer) {
    if (next == Next::kTryWithNewer) DrawIncarnation();
    job_.world.AfterFor(process_, Membership::kRetryPause,
                        [this, incarnation = membership_.incarnation()] {
                          if (IsOf(incarnation)) Register();
                        });
    return;
  }
  job_.Trace([&] {
    return absl::StrCat(job_.TaskAt(place_).ToString(),
                        " may not join: ", answer.status().ToString());
  });
  const bool lost =
      next == Next::kWaitedTooLong || ExitCodeOf(answer.status()) == kExitLost;
  on_end_(lost ? End::kLost : End::kRefused);
}

void Member::Beat() {
  if (!joined() || left_) return;
  const TaskId task = job_.TaskAt(place_);
  const uint64_t incarnation = membership_.incarnation();
  job_.world.Call<Membership::Answer>(
      process_, job_.chief_place(),
      [task, incarnation, workers = told_.workers,
       &job = job_](const World::Reply<Membership::Answer>& reply) {
        reply(job.ServingChief().Heartbeat(task, incarnation, workers));
      },
      [this, incarnation](const absl::StatusOr<Membership::Answer>& answer) {
        if (IsOf(incarnation) && joined() && !left_) OnHeartbeatAnswer(answer);
      });
}

void Member::OnHeartbeatAnswer(
    const absl::StatusOr<Membership::Answer>& answer) {
  if (answer.ok()) {
    membership_.OnHeartbeat(*answer, job_.world.Now());
  } else {
    membership_.OnFailedHeartbeat(answer.status(), job_.world.Now());
  }
  if (!membership_.ended()) {
    job_.world.AfterFor(process_, job_.config.heartbeat_interval,
                        [this, incarnation = membership_.incarnation()] {
                          if (IsOf(incarnation)) Beat();
                        });
    return;
  }
  job_.Trace([&] {
    return absl::StrCat(job_.TaskAt(place_).ToString(), " hears: ",
                        answer.ok() ? absl::StrCat("the job is over, ",
                                                   membership_.end().ToString())
                                    : answer.status().ToString());
  });
  on_end_(answer.ok()                              ? End::kJobOver
          : membership_.lease_lost()               ? End::kLeaseLost
          : absl::IsAlreadyExists(answer.status()) ? End::kRefused
          : Membership::MayPass(answer.status())   ? End::kChiefIsGone
                                                   : End::kLost);
}

void Member::Leave(LeaveCause cause, std::function<void()> left) {
  const TaskId task = job_.TaskAt(place_);
  job_.world.Call<bool>(
      process_, job_.chief_place(),
      [task, incarnation = membership_.incarnation(), cause,
       &job = job_](World::Reply<bool> reply) {
        const absl::Status status =
            job.ServingChief().Leave(task, incarnation, cause);
        if (!status.ok()) return reply(status);
        reply(true);
      },
      [this, cause, left](const absl::StatusOr<bool>& answer) {
        if (membership_.OnLeaveAnswer(answer.status(), cause) ==
            Membership::AfterLeave::kTryAgain) {
          job_.world.AfterFor(process_, Membership::kRetryPause,
                              [this, cause, left] { Leave(cause, left); });
          return;
        }
        left_ = true;
        left();
      });
}

Process::State AfterwardsOf(Member::End end) {
  switch (end) {
    case Member::End::kJobOver:
      return Process::State::kExited;
    case Member::End::kRefused:
      return Process::State::kRefused;
    case Member::End::kChiefIsGone:
      return Process::State::kChiefIsGone;
    case Member::End::kLeaseLost:
    case Member::End::kLost:
      break;
  }
  return Process::State::kRestartMe;
}

}  // namespace lockstep::simulation
