#include "tests/conformance/simulation/worker_process.h"

#include "common/base/status_macros.h"
#include "common/wire/status_detail.h"
#include "tests/conformance/simulation/chief_process.h"
#include "worker/blocks/block_source.h"
#include "worker/loop/gradient_source.h"
#include "worker/loop/loop_end.h"
#include "worker/loop/loop_options.h"
#include "worker/loop/progress_meter.h"
#include "worker/loop/training_loop.h"

namespace lockstep::simulation {
namespace {

// Computes part after part, the last one first, and tells Promises what from.
class Source final : public worker::GradientSource {
 public:
  Source(Job& job, Waiting& waiting, WorkerClient& client,
         worker::ProgressMeter& meter, int worker, int history, int64_t& passes,
         int64_t& computed_step)
      : job_(job),
        waiting_(waiting),
        client_(client),
        meter_(meter),
        worker_(worker),
        history_(history),
        passes_(passes),
        computed_step_(computed_step) {}

  bool MayBeginEarly() const override { return may_begin_early_; }

  // Comes with every token that no pass has waited for.
  absl::Status Prepare(const PassId& /*pass*/, int64_t /*index*/) override {
    NoteClaim();
    return absl::OkStatus();
  }

  absl::Status Begin(int64_t index, worker::GradientPass& pass) override {
    // Only a job with fewer workers than gradients has more than one.
    const int shares = job_.SharesOf(worker_);
    if (job_.full_at_step >= 0 && index / shares >= job_.full_at_step) {
      return WithCause(absl::ResourceExhaustedError("no room for more rows"),
                       FailureCause::kNoRoomForRows);
    }
    const auto end = job_.input_ends.find(worker_);
    if (end != job_.input_ends.end() && index / shares >= end->second) {
      return absl::OutOfRangeError("end of input");
    }
    index_ = index;
    used_.resize(job_.promises.num_parts());
    for (int part = 0; part < job_.promises.num_parts(); ++part) {
      LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(part, 1));
      used_[part] = client_.value(part);
      if (job_.world.Chance(100)) {
        waiting_.Sleep(job_.world.RandomDuration(absl::Milliseconds(2)));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<worker::GradientResult> Finish(
      worker::GradientPass& pass) override {
    const int shares = job_.SharesOf(worker_);
    NoteClaim();
    if (!job_.options.pass_times.empty()) {
      waiting_.Sleep(job_.options.pass_times[worker_]);
    }
    step_ = index_ / shares;
    const int slot = static_cast<int>(index_ % shares);
    job_.promises.OnCompute(history_, step_, used_);
    const int64_t batch =
        job_.Has(PlantedBug::kDataFollowsPasses) ? passes_ : step_;
    ++passes_;
    computed_step_ = step_;
    for (int part = job_.promises.num_parts() - 1; part >= 0; --part) {
      if (job_.world.Chance(300)) {
        waiting_.Sleep(job_.world.RandomDuration(absl::Milliseconds(2)));
      }
      if (absl::Status wanted = pass.CheckWanted(); !wanted.ok()) {
        return wanted;
      }
      // Whose data it is: of shared work they follow from the number alone.
      const bool anyones =
          job_.options.shared && !job_.Has(PlantedBug::kDataFollowsWorker);
      const int owner = anyones ? 0 : worker_;
      client_.gradient(part) =
          Promises::Gradient(batch, owner, slot, part, client_.value(part));
      if (!job_.promises.IsAbsent(batch, owner, slot, part)) {
        pass.GradientReady(part);
        continue;
      }
      client_.gradient(part) = 0;
      if (job_.Has(PlantedBug::kAbsentIsZero)) {
        pass.GradientReady(part);
      } else {
        pass.GradientAbsent(part);
      }
    }
    return worker::GradientResult{0, 1};
  }

  // The pass before has counted, as far as the worker knows. In compatible mode
  // the client knows.
  void NoteClaim() {
    if (job_.is_compatible()) return;
    const int64_t accepted = meter_.Get().accepted;
    if (accepted > accepted_) {
      job_.promises.OnClaim(history_, step_ + 1, worker_);
    }
    accepted_ = accepted;
  }

 private:
  Job& job_;
  Waiting& waiting_;
  WorkerClient& client_;
  worker::ProgressMeter& meter_;
  const int worker_;
  const int history_;
  int64_t& passes_;
  int64_t& computed_step_;
  const bool may_begin_early_ = job_.world.Chance(700);
  int64_t index_ = 0;        // of the batch that has begun
  std::vector<float> used_;  // the values that its first half has read
  int64_t step_ = -1;
  int64_t accepted_ = 0;
};

}  // namespace

WorkerProcess::WorkerProcess(Job& job, int worker)
    : job_(job),
      worker_(worker),
      member_(
          job,
          number_ = job.world.Start(job.worker_place(worker), nullptr, nullptr),
          job.worker_place(worker), [this] { waiting_.Wake(); },
          [this](Member::End end) {
            end_ = end;
            if (!clients_.empty()) clients_.back()->Cancel();
            waiting_.Wake();
          }),
      waiting_(job.world, number_) {
  waiting_.Start([this] { Main(); });
}

WorkerProcess::~WorkerProcess() {
  job_.world.End(number_);
  // A host that loses its power closes no connection: every other one.
  const uint64_t incarnation = member_.incarnation();
  if (incarnation % 2 == 0) return;
  for (ServerProcess* server : job_.servers) {
    if (server != nullptr) server->LostConnection(incarnation);
  }
}

void WorkerProcess::Stop() {
  stopped_ = true;
  if (!clients_.empty()) clients_.back()->Cancel();
  member_.Leave(LeaveCause::kStopped, [this] { Exit(State::kExited); });
}

void WorkerProcess::Main() {
  Member::End end = Member::End::kLeaseLost;
  while (end == Member::End::kLeaseLost && !stopped_) end = RunOnce();
  // It is about to leave, for good.
  if (stopped_) waiting_.Until([] { return false; });
  if (end == Member::End::kJobOver) {
    member_.Leave(worker::LeaveCauseOf(member_.end(), /*no_room=*/false));
  }
  Exit(AfterwardsOf(end));
}

Member::End WorkerProcess::LeaveFor(LeaveCause cause) {
  bool left = false;
  member_.Leave(cause, [this, &left] {
    left = true;
    waiting_.Wake();
  });
  waiting_.Until([&left] { return left; });
  if (member_.lease_lost()) return Member::End::kLeaseLost;
  // One that found no room has failed, and is started again.
  Exit(cause == LeaveCause::kNoRoom ? State::kRestartMe : State::kExited);
  waiting_.Until([] { return false; });
  return Member::End::kJobOver;
}

Member::End WorkerProcess::RunOnce() {
  end_.reset();
  member_.Join();
  waiting_.Until([this] { return member_.joined() || end_.has_value(); });
  const absl::Status status = Train();
  if (stopped_) return Member::End::kJobOver;
  const bool no_room = CauseOf(status) == FailureCause::kNoRoomForRows;
  if (absl::IsOutOfRange(status)) {
    return LeaveFor(worker::LeaveCauseOf(status, no_room));
  }
  if (!worker::MustAwaitEnd(status, no_room)) {
    if (end_.has_value()) return *end_;
    if (member_.lease_lost()) return Member::End::kLeaseLost;
    job_.promises.Break(
        absl::StrCat("worker ", worker_, " fails: ", status.ToString()));
  }
  job_.Trace([&] {
    return absl::StrCat("worker ", worker_,
                        " waits for the end: ", status.ToString());
  });
  const absl::Duration wait = worker::EndWait(status, no_room, job_.config);
  do {
    waiting_.UntilOrFor(wait, [this] { return end_.has_value(); });
  } while (!end_.has_value() &&
           worker::MustWaitOn(status, no_room, member_.job_is_training()));
  if (no_room && !end_.has_value()) {
    return LeaveFor(worker::LeaveCauseOf(status, no_room));
  }
  member_.OnNewerIncarnation(NewestIncarnationOf(status));
  return end_.value_or(Member::End::kLeaseLost);
}

absl::Status WorkerProcess::Train() {
  using Answer = std::optional<ChiefProcess::PlanAnswer>;
  Answer plan;
  while (!end_.has_value() && !stopped_) {
    const auto answer = waiting_.Call<Answer>(
        job_.chief_place(),
        [&job = job_, worker = worker_, incarnation = member_.incarnation()](
            const World::Reply<Answer>& reply) {
          reply(job.ServingChief().GetPlan({TaskType::kWorker, worker},
                                           incarnation));
        });
    if (!answer.ok() && !Membership::MayPass(answer.status())) {
      member_.OnRefusal(answer.status());
      return answer.status();
    }
    plan = answer.value_or(std::nullopt);
    if (plan.has_value()) break;
    waiting_.Sleep(Membership::kRetryPause);
  }
  if (end_.has_value() || stopped_) {
    return absl::CancelledError("the membership is over");
  }
  clients_.push_back(std::make_unique<WorkerClient>(
      job_, waiting_, number_, worker_, member_.incarnation(), plan->plan));
  WorkerClient& client = *clients_.back();
  worker::ProgressMeter meter(job_.world);
  Source source(job_, waiting_, client, meter, worker_, job_.promises.history(),
                passes_, computed_step_);
  const worker::TrainingLoop::Options options =
      worker::LoopOptionsOf(member_.job(), worker_, plan->global_step);
  worker::GradientClipper no_clipper(
      {}, DType::kFloat32, [] { return worker::GradientClipper::Gradients(); });
  worker::BlockSource blocks(source, job_.variables, options.numbers,
                             no_clipper, client.memory());
  worker::GradientSource& computed =
      job_.options.shared ? static_cast<worker::GradientSource&>(blocks)
                          : source;
  const absl::Status status =
      worker::TrainingLoop(options, client, computed, meter).Run();
  if (status.ok()) source.NoteClaim();
  return status;
}

}  // namespace lockstep::simulation
