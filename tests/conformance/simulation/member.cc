#include "tests/conformance/simulation/member.h"

#include "tests/conformance/simulation/chief_process.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(200);

bool Transient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

void Member::Join() {
  incarnation_ = ++job_.last_incarnation;
  joined_ = false;
  Register(incarnation_);
}

void Member::Register(uint64_t incarnation) {
  if (incarnation != incarnation_) return;
  const TaskId task = job_.TaskAt(place_);
  job_.world.Call<RunSettings>(
      process_, job_.chief_place(),
      [task, incarnation, &job = job_](World::Reply<RunSettings> reply) {
        reply(job.ServingChief().Register(task, incarnation));
      },
      [this, incarnation, task](const absl::StatusOr<RunSettings>& answer) {
        if (incarnation != incarnation_) return;
        if (Transient(answer.status())) {
          job_.world.AfterFor(process_, kRetryPause,
                              [this, incarnation] { Register(incarnation); });
          return;
        }
        if (!answer.ok()) {
          // The process ends, and is started again.
          job_.Trace([&] {
            return absl::StrCat(task.ToString(),
                                " may not join: ", answer.status().ToString());
          });
          on_end_(End::kReplaced);
          return;
        }
        joined_ = true;
        settings_ = *answer;
        Beat(incarnation);
        on_joined_();
      });
}

void Member::Beat(uint64_t incarnation) {
  if (incarnation != incarnation_ || !joined_) return;
  const TaskId task = job_.TaskAt(place_);
  job_.world.Call<std::pair<bool, bool>>(
      process_, job_.chief_place(),
      [task, incarnation,
       &job = job_](World::Reply<std::pair<bool, bool>> reply) {
        const auto over = job.ServingChief().Heartbeat(task, incarnation);
        if (!over.ok()) return reply(over.status());
        reply(std::pair(*over, job.ServingChief().IsTraining()));
      },
      [this, incarnation,
       task](const absl::StatusOr<std::pair<bool, bool>>& over) {
        if (over.ok()) job_is_training_ = over->second;
        if (incarnation != incarnation_ || !joined_) return;
        if (over.ok() ? over->first : !Transient(over.status())) {
          joined_ = false;
          job_.Trace([&] {
            return absl::StrCat(task.ToString(), " hears: ",
                                over.ok() ? "done" : over.status().ToString());
          });
          if (over.ok()) {
            on_end_(End::kDone);
          } else {
            on_end_(absl::IsAborted(over.status()) ? End::kLeaseLost
                                                   : End::kReplaced);
          }
          return;
        }
        job_.world.AfterFor(process_, job_.config.heartbeat_interval,
                            [this, incarnation] { Beat(incarnation); });
      });
}

void Member::Leave() {
  joined_ = false;
  const TaskId task = job_.TaskAt(place_);
  job_.world.Call<bool>(
      process_, job_.chief_place(),
      [task, incarnation = incarnation_,
       &job = job_](World::Reply<bool> reply) {
        job.ServingChief()
            .Leave(task, incarnation, LeaveCause::kDone)
            .IgnoreError();
        reply(true);
      },
      [](const absl::StatusOr<bool>&) {});
}

void Member::Leave(LeaveCause cause, std::function<void()> left) {
  joined_ = false;
  const TaskId task = job_.TaskAt(place_);
  job_.world.Call<bool>(
      process_, job_.chief_place(),
      [task, incarnation = incarnation_, cause,
       &job = job_](World::Reply<bool> reply) {
        const absl::Status status =
            job.ServingChief().Leave(task, incarnation, cause);
        if (!status.ok()) return reply(status);
        reply(true);
      },
      [this, cause, left](const absl::StatusOr<bool>& answer) {
        if (!Transient(answer.status()) || job_.done) return left();
        job_.world.AfterFor(process_, kRetryPause,
                            [this, cause, left] { Leave(cause, left); });
      });
}

}  // namespace lockstep::simulation
