#include "tests/conformance/simulation/server_process.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "server/shard/step_progress.h"
#include "server/state/file/state_file.h"
#include "server/step/longest_waits.h"

namespace lockstep::simulation {

ServerProcess::ServerProcess(Job& job, int server, Fault fault)
    : job_(job),
      server_(server),
      fault_(fault),
      host_incarnation_(++job.last_incarnation),
      host_({server, host_incarnation_, job.state_dir(),
             job.options.shared_memory, TaskId{TaskType::kChief, 0},
             /*num_servers=*/0, /*longest_release=*/absl::ZeroDuration()}),
      control_(host_),
      member_(
          job,
          number_ = job.world.Start(
              job.server_place(server), [this] { BeforeEvent(); },
              [this] { AfterEvent(); }),
          job.server_place(server), [this] { host_.SetJobId(job_.id); },
          [this](Member::End end) {
            if (end == Member::End::kLeaseLost) return member_.Join();
            if (end == Member::End::kJobOver) {
              if (member_.state_is_spare()) host_.RemoveState().IgnoreError();
              member_.Leave(member_.end().ok() ? LeaveCause::kDone
                                               : LeaveCause::kStopped);
            }
            Exit(AfterwardsOf(end));
          }) {
  job_.servers[server_] = this;
  job_.promises.OnStart(server_);
  job_.compatible.OnStart(server_);
  server::StateHeader header;
  header.job_id = job_.id;
  header.task_index = server_;
  if (!server::StateFile::Peek(job_.state_dir(), header).ok()) {
    job_.promises.OnStartWithoutState(server_);
  }
  job_.world.AfterFor(number_, absl::ZeroDuration(),
                      [this] { member_.Join(); });
}

ServerProcess::~ServerProcess() {
  job_.world.End(number_);
  if (job_.servers[server_] == this) job_.servers[server_] = nullptr;
}

server::Shard* ServerProcess::shard() const {
  const auto found = host_.shard();
  return found.ok() ? found->get() : nullptr;
}

void ServerProcess::BeforeEvent() {
  server::Shard* open = shard();
  was_active_ = open != nullptr && open->active();
  step_before_ = was_active_ ? open->engine().step() : -1;
  members_before_.clear();
  if (job_.options.shared) {
    // All numbers, whichever workers compute them: P12.
    members_before_.assign(job_.options.replicas_to_aggregate, 0);
  } else if (was_active_ && open->gate() != nullptr) {
    members_before_ = open->gate()->Members();
  }
}

void ServerProcess::UpdateReturnedParts() {
  auto& returned = host_.returned_parts();
  while (const auto part = returned.PopFor(absl::ZeroDuration())) {
    ++job_.tally.held_up;
    job_.world.AfterFor(number_, absl::ZeroDuration(), [this, part = *part] {
      if (server::Shard* open = shard()) {
        Send(control_.Settle(*open, open->engine().PartReturned(part)));
      }
    });
  }
}

void ServerProcess::AfterEvent() {
  UpdateReturnedParts();
  views_.Check();
  if (job_.options.mirrored) {
    AnswerMeans();
    LookForMeans();
  }
  server::Shard* open = shard();
  if (open != nullptr && open->active() && server_ == 0) {
    const int64_t step = open->engine().step();
    if (!was_active_) {
      job_.promises.OnOpen(step);
    } else if (step != step_before_) {
      job_.promises.OnCommit(step, members_before_);
    }
    was_active_ = true;
    step_before_ = step;
  }
  job_.promises.OnServer(server_, open);
  if (job_.is_compatible() && open != nullptr) {
    job_.compatible.OnServer(server_, *open);
  }
}

server::ChiefCommands::Chief ServerProcess::ChiefOf(
    const server::ChiefCommands::Chief& chief) {
  server::ChiefCommands::Chief taken_for = chief;
  if (job_.Has(PlantedBug::kOldChiefIsObeyed)) {
    while (absl::IsAborted(
        host_.CheckChief(job_.id, taken_for.epoch, taken_for.incarnation))) {
      ++taken_for.epoch;
    }
  }
  return taken_for;
}

absl::Status ServerProcess::Obeyed(const server::ChiefCommands::Chief& chief,
                                   const absl::Status& status) {
  if (status.ok()) {
    job_.promises.OnObeyed(server_, chief.epoch, chief.incarnation);
  }
  return status;
}

absl::StatusOr<std::shared_ptr<server::Shard>> ServerProcess::Admit(
    const Pass& pass) {
  absl::StatusOr<std::shared_ptr<server::Shard>> admitted =
      host_.Admit(job_.id, {TaskType::kWorker, pass.worker}, pass.incarnation);
  if (job_.Has(PlantedBug::kServesBeforeOpen) &&
      absl::IsUnavailable(admitted.status())) {
    admitted = host_.shard();
  }
  LOCKSTEP_RETURN_IF_ERROR(admitted.status());
  LOCKSTEP_RETURN_IF_ERROR(
      (*admitted)->CheckWorker({TaskType::kWorker, pass.worker}, pass.slot));
  job_.promises.OnAdmitted(server_, (*admitted)->active());
  lost_.Called(pass.incarnation, pass.worker, pass.incarnation);
  return admitted;
}

void ServerProcess::TakeToken(const Pass& pass, int64_t attempt, bool computing,
                              const World::Reply<server::Gate::Answer>& reply) {
  const auto admitted = Admit(pass);
  if (!admitted.ok()) return reply(admitted.status());
  const uint64_t ticket = ++tickets_;
  waits_[ticket] = reply;
  const auto answers = (*admitted)->AwaitToken(
      {ticket, pass, attempt, computing}, job_.world.Now());
  if (!answers.ok()) {
    waits_.erase(ticket);
    return reply(answers.status());
  }
  job_.world.AfterFor(number_, server::kLongestTokenWait, [this, ticket] {
    if (waits_.count(ticket) == 0) return;
    if (shard() != nullptr) shard()->gate()->Cancel(ticket);
    SendTokens({{ticket, server::Gate::Outcome::kCancelled}});
  });
  SendTokens(*answers);
}

absl::StatusOr<server::Gate::Announced> ServerProcess::Announce(
    const Pass& pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto admitted, Admit(pass));
  return admitted->gate()->Announce(pass);
}

void ServerProcess::PlantInPush(server::Shard& shard, server::Push& push,
                                uint64_t ticket) {
  const int64_t step = shard.engine().step();
  if (job_.Has(PlantedBug::kStaleGradientCounts) &&
      push.pass.local_step < step) {
    push.pass.local_step = step;
    push.attempt = shard.engine().arrivals().attempt;
  }
  if (job_.Has(PlantedBug::kRepeatedPushCounts) && ticket % 2 == 0) {
    push.pass.worker = (push.pass.worker + 1) % job_.options.total_num_replicas;
  }
  if (job_.Has(PlantedBug::kGradientOfAnotherNumber) && ticket % 8 == 0) {
    push.pass.slot = (push.pass.slot + 1) % job_.options.replicas_to_aggregate;
  }
}

void ServerProcess::AddPush(const server::Push& pushed,
                            const World::Reply<PushReply>& reply) {
  const auto admitted = Admit(pushed.pass);
  if (!admitted.ok()) return reply(admitted.status());
  if (Postpone(**admitted, pushed.pass.local_step,
               [this, pushed, reply](const absl::Status& status) {
                 if (!status.ok()) return reply(status);
                 AddPush(pushed, reply);
               })) {
    return;
  }
  const uint64_t ticket = ++tickets_;
  server::Push push = pushed;
  PlantInPush(**admitted, push, ticket);
  pushes_[ticket] = reply;
  absl::StatusOr<server::ShardAnswers> answers =
      (*admitted)->engine().AddPush(ticket, std::move(push));
  if (!answers.ok()) {
    pushes_.erase(ticket);
    return reply(answers.status());
  }
  if (job_.is_compatible()) NoteOutcome(pushed, *answers);
  Send(control_.Settle(**admitted, *std::move(answers)));
}

std::vector<LentValue> ServerProcess::Read(
    const std::vector<server::LentBytes>& lent, bool share) {
  std::vector<LentValue> values;
  const auto open = host_.shard();
  if (!open.ok()) return values;
  for (const server::LentBytes& part : lent) {
    values.push_back(views_.Read(number_, *open, part, share));
  }
  return values;
}

// In compatible mode the call itself decides about the gradient.
void ServerProcess::NoteOutcome(const server::Push& push,
                                const server::ShardAnswers& answers) {
  float gradient = 0;
  std::memcpy(&gradient, push.gradients[0].slices[0].data, sizeof(gradient));
  job_.compatible.OnPush(server_, push.pass, push.first_part, gradient,
                         answers.pushes.at(0).outcomes.at(0));
}

void ServerProcess::Pull(const PullCall& call,
                         const World::Reply<PullReply>& reply) {
  const auto admitted = Admit(call.pass);
  if (!admitted.ok()) return reply(admitted.status());
  server::Shard& open = **admitted;
  if (job_.Has(PlantedBug::kWorkersWordCommits)) {
    open.engine().LearnCommitted(call.step);
  }
  if (!Postpone(open, call.step,
                [this, call, reply](const absl::Status& status) {
                  if (!status.ok()) return reply(status);
                  Pull(call, reply);
                })) {
    reply(ValuesFor(call, open));
  }
}

absl::StatusOr<PullReply> ServerProcess::ValuesFor(const PullCall& call,
                                                   server::Shard& open) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const server::Shard::Values values,
      open.Pull(call.first_part, /*num_parts=*/1, call.step));
  PullReply reply{values.step, Read(values.parts, call.share)};
  if (job_.Has(PlantedBug::kPullOfHalfAnUpdate) &&
      open.state().record().prepared_step > values.step) {
    reply.values =
        Read({open.state().values().LendNext(call.first_part)}, false);
  }
  return reply;
}

bool ServerProcess::Postpone(server::Shard& open, int64_t step,
                             server::PostponedCalls::GoOn go_on) {
  if (!postponed_.Add(open.engine(), step, job_.world.Now(),
                      std::move(go_on))) {
    return false;
  }
  ++job_.tally.postponed;
  job_.world.AfterFor(
      number_, server::kLongestCommitWait + server::kLookForOldCalls, [this] {
        postponed_.EndOld(job_.world.Now() - server::kLongestCommitWait);
      });
  return true;
}

void ServerProcess::SendTokens(
    const std::vector<server::Gate::Answer>& answers) {
  AfterEvent();
  for (const server::Gate::Answer& answer : answers) {
    auto call = waits_.extract(answer.ticket);
    if (call.empty()) continue;
    if (answer.outcome == server::Gate::Outcome::kToken) {
      job_.promises.OnToken(answer.step);
      job_.compatible.OnToken(answer.step);
    }
    if (answer.outcome == server::Gate::Outcome::kRedo) ++job_.tally.redone;
    call.mapped()(answer);
  }
}

void ServerProcess::Send(server::ChiefCommands::Ready ready) {
  for (const server::PushAnswer& answer : ready.answers.pushes) {
    auto call = pushes_.extract(answer.ticket);
    if (call.empty()) continue;
    if (!answer.status.ok()) {
      call.mapped()(answer.status);
      continue;
    }
    call.mapped()(PushReply{answer.outcomes, Read(answer.values, true)});
  }
  SendTokens(ready.tokens);
  if (shard() != nullptr) postponed_.Resume(shard()->engine());
  for (const server::TakeAnswer& answer : ready.answers.takes) {
    auto call = takes_.extract(answer.ticket);
    if (call.empty()) continue;
    if (answer.status.ok()) {
      chief::TakeResult taken;
      taken.prepared = answer.prepared;
      taken.attempt = answer.attempt;
      taken.committed_step = ready.committed_step;
      if (server::Shard* open = shard(); open != nullptr) {
        taken.announced_workers =
            server::MembersAfterTake(*open, ready.committed_step);
      }
      taken.contributors = answer.contributors;
      taken.squares = answer.squares;
      last_squares_ = std::sqrt(answer.squares.value_or(0));
      call.mapped()(taken);
    } else {
      call.mapped()(answer.status);
    }
  }
  server::Shard* open = shard();
  if (!job_.Has(PlantedBug::kTokenBeforeCommit) || open == nullptr ||
      open->gate() == nullptr) {
    return;
  }
  const int64_t prepared = open->GetReport().prepared_step;
  if (prepared < 0) return;
  std::vector<server::Gate::Answer> early;
  for (const auto& [ticket, reply] : waits_) {
    early.push_back({ticket, server::Gate::Outcome::kToken, prepared});
  }
  SendTokens(early);
}

bool ServerProcess::HasMember(int worker) const {
  server::Shard* open = shard();
  if (open == nullptr || open->gate() == nullptr) return false;
  const std::vector<int> members = open->gate()->Members();
  return std::count(members.begin(), members.end(), worker) > 0;
}

std::string ServerProcess::WaitsFor() const {
  const server::Shard* open = shard();
  if (open == nullptr) return absl::StrCat("ps ", server_, " has no shard");
  return absl::StrCat("ps ", server_, " waits for ",
                      shard()->engine().WaitsFor());
}

void ServerProcess::LetGo() {
  const absl::Status why = absl::UnavailableError("the job goes back");
  postponed_.EndAll(why);
  for (auto& [ticket, reply] : waits_) reply(why);
  for (auto& [ticket, reply] : pushes_) reply(why);
  for (auto& [ticket, reply] : takes_) reply(why);
  SendMeans(mean_waits_.TakeAll(why));
  views_.BreakOff();
  waits_.clear();
  pushes_.clear();
  takes_.clear();
}

}  // namespace lockstep::simulation
