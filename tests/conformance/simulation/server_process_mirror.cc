// The part of ServerProcess that other mirrors call.

#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/server_process.h"

namespace lockstep::simulation {
namespace {

// As MeanFetcher has it.
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
  mean_calls_[ticket] = reply;
  mean_waits_.Add({ticket, *admitted, of, part, 1, job_.world.Now()});
  job_.world.AfterFor(number_, server::MeanWaits::kLongestWait, [this] {
    SendMeans(mean_waits_.TakeOld(job_.world.Now()));
  });
  AnswerMeans();
}

void ServerProcess::AnswerMeans() { SendMeans(mean_waits_.TakeReady(shard())); }

void ServerProcess::SendMeans(
    const std::vector<server::MeanWaits::Answer>& answers) {
  for (const server::MeanWaits::Answer& answer : answers) {
    auto call = mean_calls_.extract(answer.ticket);
    if (answer.means.ok()) {
      call.mapped()(MeanOf((*answer.means)[0]));
    } else {
      call.mapped()(answer.means.status());
    }
  }
}

void ServerProcess::LookForMeans() {
  const auto open = host_.shard();
  if (!open.ok() || !(*open)->active()) return;
  for (const int part :
       mean_requests_.Look(*open, (*open)->engine().means_wanted())) {
    mean_requests_.Called(part, 1);
    AskForMean(part, (*open)->parts()[part].reducer);
  }
}

void ServerProcess::AskForMean(int part, int reducer) {
  const server::StepAttempt of = mean_requests_.of();
  job_.world.Call<Mean>(
      number_, job_.server_place(reducer),
      [&job = job_, reducer, of, part, from = TaskId{TaskType::kPs, server_},
       incarnation = host_incarnation_](const World::Reply<Mean>& reply) {
        job.servers[reducer]->FetchMean(from, incarnation, of, part, reply);
      },
      [this, of, part,
       asked = mean_requests_.shard()](const absl::StatusOr<Mean>& answer) {
        const absl::Status taken =
            answer.ok() ? TakeMean(asked, of, part, *answer) : answer.status();
        if (!server::MeanRequests::MustRepeat(taken)) return;
        // The next look, after this event, asks again.
        job_.world.AfterFor(number_, kRetryPause, [this, of, part] {
          mean_requests_.Failed(of, part, 1);
        });
      });
}

absl::Status ServerProcess::TakeMean(const std::weak_ptr<server::Shard>& asked,
                                     const server::StepAttempt& of, int part,
                                     const Mean& mean) {
  std::shared_ptr<server::Shard> open = asked.lock();
  if (open == nullptr) return absl::OkStatus();  // given up
  server::StepAttempt taken_for = of;
  if (job_.Has(PlantedBug::kOldMeanCounts)) {
    const server::Engine::MeansWanted wanted = open->engine().means_wanted();
    taken_for = {wanted.step, wanted.attempt};
  }
  std::vector<server::PartGradient> means;
  means.push_back(GradientOf(mean));
  LOCKSTEP_ASSIGN_OR_RETURN(
      server::ShardAnswers answers,
      open->engine().AddMeans(taken_for.step, taken_for.attempt, part,
                              std::move(means)));
  Send(control_.Settle(*open, std::move(answers)));
  return absl::OkStatus();
}

}  // namespace lockstep::simulation
