// The part of ServerProcess that other mirrors call.

#include <cstring>
#include <utility>

#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/server_process.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(3);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

ServerProcess::Mean MeanOf(const server::PartGradient& lent) {
  ServerProcess::Mean mean{0, lent.absent};
  if (!lent.absent) {
    std::memcpy(&mean.value, lent.slices[0].data, sizeof(mean.value));
  }
  return mean;
}

server::PartGradient GradientOf(const ServerProcess::Mean& mean) {
  server::PartGradient gradient;
  gradient.absent = mean.absent;
  if (mean.absent) return gradient;
  auto owner = std::make_shared<float>(mean.value);
  gradient.slices = {
      {reinterpret_cast<const std::byte*>(owner.get()), sizeof(float)}};
  gradient.owner = owner;
  return gradient;
}

}  // namespace

void ServerProcess::FetchMean(const TaskId& from, uint64_t incarnation,
                              const server::StepAttempt& of, int part,
                              const World::Reply<Mean>& reply) {
  const auto admitted = host_.Admit(job_.id, from, incarnation);
  if (!admitted.ok()) return reply(admitted.status());
  const uint64_t ticket = ++tickets_;
  mean_waits_.push_back({ticket, *admitted, of, part, reply});
  job_.world.AfterFor(number_, kLongestWait, [this, ticket] {
    for (auto wait = mean_waits_.begin(); wait != mean_waits_.end(); ++wait) {
      if (wait->ticket != ticket) continue;
      wait->reply(absl::UnavailableError("the mean is not there yet"));
      mean_waits_.erase(wait);
      return;
    }
  });
  AnswerMeans();
}

void ServerProcess::AnswerMeans() {
  for (auto wait = mean_waits_.begin(); wait != mean_waits_.end();) {
    const auto means = wait->shard->engine().Means(
        wait->of.step, wait->of.attempt, wait->part, 1);
    if (means.ok() && !means->has_value()) {
      ++wait;
      continue;
    }
    if (means.ok()) {
      wait->reply(MeanOf((**means)[0]));
    } else {
      wait->reply(means.status());
    }
    wait = mean_waits_.erase(wait);
  }
}

void ServerProcess::LookForMeans() {
  const auto open = host_.shard();
  if (!open.ok() || !(*open)->active()) return;
  const server::Engine::MeansWanted wanted = (*open)->engine().means_wanted();
  if (asked_shard_.lock() != *open || asked_at_.step != wanted.step ||
      asked_at_.attempt != wanted.attempt) {
    asked_shard_ = *open;
    asked_at_ = {wanted.step, wanted.attempt};
    asked_.clear();
  }
  for (const int part : wanted.parts) {
    if (!asked_.insert(part).second) continue;
    AskForMean(asked_at_, part, (*open)->parts()[part].reducer);
  }
}

void ServerProcess::AskForMean(const server::StepAttempt& of, int part,
                               int reducer) {
  job_.world.Call<Mean>(
      number_, job_.server_place(reducer),
      [&job = job_, reducer, of, part, from = TaskId{TaskType::kPs, server_},
       incarnation = host_incarnation_](const World::Reply<Mean>& reply) {
        job.servers[reducer]->FetchMean(from, incarnation, of, part, reply);
      },
      [this, of, part,
       asked = asked_shard_](const absl::StatusOr<Mean>& answer) {
        if (answer.ok()) return TakeMean(asked, of, part, *answer);
        if (absl::IsAborted(answer.status())) return;
        job_.world.AfterFor(number_, kRetryPause, [this, of, part] {
          // The next look, after this event, asks again.
          if (asked_at_.step == of.step && asked_at_.attempt == of.attempt) {
            asked_.erase(part);
          }
        });
      });
}

void ServerProcess::TakeMean(const std::weak_ptr<server::Shard>& asked,
                             const server::StepAttempt& of, int part,
                             const Mean& mean) {
  std::shared_ptr<server::Shard> open = asked.lock();
  if (open == nullptr) return;
  server::StepAttempt taken_for = of;
  if (job_.Has(PlantedBug::kOldMeanCounts)) {
    const server::Engine::MeansWanted wanted = open->engine().means_wanted();
    taken_for = {wanted.step, wanted.attempt};
  }
  std::vector<server::PartGradient> means;
  means.push_back(GradientOf(mean));
  absl::StatusOr<server::ShardAnswers> answers = open->engine().AddMeans(
      taken_for.step, taken_for.attempt, part, std::move(means));
  if (!answers.ok()) return;
  Send(control_.Settle(*open, *std::move(answers)));
}

}  // namespace lockstep::simulation
