#include "tests/conformance/simulation/chief_process.h"

#include <algorithm>
#include <utility>

#include "chief/events/job_reports.h"
#include "chief/job/job_context.h"
#include "chief/operators/heartbeat_answer.h"
#include "common/base/passing_error.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/membership/coordinator_answers.h"
#include "common/program/main_support.h"

namespace lockstep::simulation {
namespace {

constexpr int kProtocol = 1;  // of all processes

std::vector<TaskId> MembersOf(const Job& job) {
  std::vector<TaskId> tasks;
  const int last = job.worker_place(job.options.total_num_replicas);
  for (int place = job.server_place(0); place < last; ++place) {
    tasks.push_back(job.TaskAt(place));
  }
  return tasks;
}

JobConfig ConfigOf(const Job& job) {
  JobConfig config = job.config;
  if (job.Has(PlantedBug::kWaitsForEver)) {
    config.max_wait = absl::InfiniteDuration();
  }
  return config;
}

}  // namespace

ChiefProcess::ChiefProcess(Job& job)
    : job_(job),
      members_(MembersOf(job), job.config.lease),
      group_(job, waiting_,
             [this](uint64_t above) { return Incarnation((above >> 20) + 1); }),
      settings_table_(job.config),
      config_(ConfigOf(job)),
      answers_({job.id, config_, config_.total_num_replicas, kProtocol,
                job.world.Now()},
               members_, status_table_, settings_table_),
      driver_(config_, {.num_servers = job.num_servers()}, members_,
              job.world.Now()),
      waiting_(job.world,
               number_ = job.world.Start(job.chief_place(), nullptr, nullptr)) {
  for (int server = 0; server < job.num_servers(); ++server) {
    calls_.push_back(std::make_unique<ChiefCalls>(
        job, waiting_, Incarnation(static_cast<uint64_t>(number_) + 1),
        server));
    group_.Add(*calls_.back());
  }
  status_table_.SetSettings(driver_.settings(), job.world.Now());
  job_.chief = this;
  job_.chiefs[number_] = this;
  waiting_.Start([this] { Main(); });
}

uint64_t ChiefProcess::Incarnation(uint64_t time) const {
  return (time << 20) + static_cast<uint64_t>(number_);
}

ChiefProcess::~ChiefProcess() {
  job_.world.End(number_);
  if (job_.chief == this) job_.chief = nullptr;
  job_.chiefs.erase(number_);
}

bool ChiefProcess::TakesPart(int server) const {
  const std::vector<int> servers = driver_.Servers();
  return std::binary_search(servers.begin(), servers.end(), server);
}

absl::StatusOr<chief::MemberAnswers::Registered> ChiefProcess::Register(
    const TaskId& task, uint64_t incarnation, bool again) {
  chief::MemberAnswers::Registration registration;
  registration.sender = {job_.id, task, incarnation};
  registration.protocol = kProtocol;
  registration.again = again;
  LOCKSTEP_RETURN_IF_ERROR(answers_.CheckIsMeant(registration));
  LOCKSTEP_ASSIGN_OR_RETURN(chief::MemberAnswers::Registered registered,
                            answers_.Register(registration, job_.world.Now()));
  if (task.type == TaskType::kWorker && registered.taken_out.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(Describe(registration.sender));
  }
  return registered;
}

absl::Status ChiefProcess::Describe(const Sender& sender) {
  LOCKSTEP_RETURN_IF_ERROR(answers_.CheckDescribes(sender, job_.world.Now()));
  return answers_.Describe(job_.variables, std::nullopt, /*num_examples=*/0);
}

bool ChiefProcess::KnowsModel(const TaskId& task) const {
  if (task.type == TaskType::kWorker) return true;
  const ServerProcess* server = job_.servers[task.index];
  return server != nullptr && server->HasShard();
}

absl::StatusOr<Membership::Answer> ChiefProcess::Heartbeat(
    const TaskId& task, uint64_t incarnation, const std::vector<int>& workers) {
  chief::MemberAnswers::Heartbeat heartbeat;
  heartbeat.sender = {job_.id, task, incarnation};
  heartbeat.protocol = kProtocol;
  heartbeat.workers = workers;
  LOCKSTEP_ASSIGN_OR_RETURN(const chief::MemberAnswers::Heard heard,
                            answers_.Hear(heartbeat, job_.world.Now()));
  if (heard.model_wanted && KnowsModel(task)) {
    LOCKSTEP_RETURN_IF_ERROR(Describe(heartbeat.sender));
  }
  if (job_.Has(PlantedBug::kMembersAreNotTold) &&
      heard.job.state >= JobState::kDone) {
    return Membership::Answer();
  }
  v1::HeartbeatResponse response;
  chief::FillHeard(heard, response);
  return AnswerOf(response);
}

absl::Status ChiefProcess::Leave(const TaskId& task, uint64_t incarnation,
                                 LeaveCause cause) {
  if (cause == LeaveCause::kNoRoom &&
      job_.Has(PlantedBug::kFullTableIsNotTold)) {
    cause = LeaveCause::kStopped;
  }
  const std::string reason = cause == LeaveCause::kNoRoom ? "no room" : "bye";
  return answers_.Leave({job_.id, task, incarnation}, cause, reason,
                        std::nullopt, job_.world.Now());
}

absl::StatusOr<std::optional<ChiefProcess::PlanAnswer>> ChiefProcess::GetPlan(
    const TaskId& task, uint64_t incarnation) {
  LOCKSTEP_RETURN_IF_ERROR(
      answers_.CheckMember({job_.id, task, incarnation}, job_.world.Now()));
  std::optional<Plan> plan = status_table_.plan();
  if (!plan.has_value()) return std::nullopt;
  return PlanAnswer{*std::move(plan),
                    status_table_.Get(job_.world.Now()).global_step};
}

void ChiefProcess::RequestStop() {
  const std::string reason = "an operator";
  const absl::Status stop = StoppedStatus(reason, /*hold=*/true);
  settings_table_.Stop(reason);
  Post(chief::StopWanted{stop});
  chief::RecordStop(stop, stop_);
}

void ChiefProcess::Do(const chief::TakeOut& out) {
  if (!job_.Has(PlantedBug::kLeaverStaysAMember))
    settings_table_.Leave(out.worker, out.why);
}

// Events.

void ChiefProcess::Main() {
  Carry(driver_.On(chief::Started{}, job_.world.Now()));
  while (!finished_) {
    const absl::Duration rest = driver_.next() - job_.world.Now();
    if (events_.empty() && rest > absl::ZeroDuration()) {
      waiting_.UntilOrFor(rest, [this] { return !events_.empty(); });
    }
    Carry(driver_.On(NextEvent(), job_.world.Now()));
  }
  waiting_.Until([this] { return !saver_ || saver_->done(); });
}

chief::JobEvent ChiefProcess::NextEvent() {
  if (!told_model_ && !status_table_.variables().empty()) {
    told_model_ = true;
    return chief::ModelDescribed{};
  }
  if (driver_.TakesSettings()) {
    const RunSettings wanted = settings_table_.wanted();
    const bool resumes = driver_.wanted_settings().paused && !wanted.paused;
    if (!(wanted == driver_.wanted_settings()) &&
        !(resumes && job_.Has(PlantedBug::kResumeIsLost))) {
      return chief::SettingsWanted{wanted};
    }
  }
  if (events_.empty()) return chief::Tick{};
  chief::JobEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void ChiefProcess::Post(const chief::JobEvent& event) {
  events_.push_back(event);
  // The main fiber goes on in an event of its own.
  job_.world.AfterFor(number_, absl::ZeroDuration(),
                      [this] { waiting_.Wake(); });
}

// Actions.

void ChiefProcess::Carry(const chief::JobActions& actions) {
  for (const chief::JobAction& action : actions) {
    std::visit([this](const auto& one) { Do(one); }, action);
  }
}

// Calls `serve` on a server, with the chief as it is now, and posts the event
// that `done` makes of the answer.
template <typename Answer, typename Serve, typename Done>
void ChiefProcess::Ask(int server, Serve serve, Done done) {
  job_.world.Call<Answer>(
      number_, job_.server_place(server),
      [&job = job_, server, chief = calls_[server]->Self(),
       serve](const World::Reply<Answer>& reply) {
        serve(*job.servers[server], chief, reply);
      },
      [this, done](const absl::StatusOr<Answer>& answer) {
        Post(done(answer));
      });
}

void ChiefProcess::Do(const chief::Take& take) {
  Ask<chief::TakeResult>(
      take.server,
      [take](ServerProcess& ps, const server::ChiefCommands::Chief& chief,
             const World::Reply<chief::TakeResult>& reply) {
        ps.Take(chief, {take.step, take.commit_until, take.attempt, take.norm},
                reply);
      },
      [take](const absl::StatusOr<chief::TakeResult>& answer) {
        return chief::TakeAnswered{take.round,
                                   take.server,
                                   take.step,
                                   answer.status(),
                                   answer.value_or(chief::TakeResult()),
                                   take.call};
      });
}

void ChiefProcess::Do(const chief::Commit& commit) {
  std::vector<std::vector<int>> told;
  for (const std::vector<int>& set : commit.contributors) {
    if (!set.empty()) told.push_back(set);
  }
  Ask<int64_t>(
      0,
      [commit, told](ServerProcess& ps,
                     const server::ChiefCommands::Chief& chief,
                     const World::Reply<int64_t>& reply) {
        reply(ps.Commit(chief, commit.step, commit.attempt, told));
      },
      [commit](const absl::StatusOr<int64_t>& answer) {
        return chief::CommitAnswered{commit.round, commit.step, commit.attempt,
                                     answer.status(), answer.value_or(0)};
      });
}

void ChiefProcess::Do(const chief::TellCommit& tell) {
  for (const int server : tell.servers) {
    job_.world.Call<int64_t>(
        number_, job_.server_place(server),
        [&job = job_, server, tell,
         chief = calls_[server]->Self()](const World::Reply<int64_t>& reply) {
          reply(job.servers[server]->Commit(chief, tell.step, tell.attempt));
        },
        [](const absl::StatusOr<int64_t>&) {});
  }
}

void ChiefProcess::Do(const chief::Expire& expire) {
  Ask<chief::ShardCalls::Expired>(
      expire.server,
      [expire](ServerProcess& ps, const server::ChiefCommands::Chief& chief,
               const World::Reply<chief::ShardCalls::Expired>& reply) {
        reply(ps.ExpireWorker(chief, expire.worker, expire.incarnation,
                              expire.step, expire.attempt, expire.input_ended));
      },
      [expire](const absl::StatusOr<chief::ShardCalls::Expired>& answer) {
        return chief::ExpireAnswered{expire.round, expire.server, expire.worker,
                                     answer};
      });
}

void ChiefProcess::Do(const chief::Replace& replace) {
  Ask<chief::ShardCalls::Replaced>(
      replace.server,
      [replace](ServerProcess& ps, const server::ChiefCommands::Chief& chief,
                const World::Reply<chief::ShardCalls::Replaced>& reply) {
        reply(ps.ReplaceMember(chief, replace.worker, replace.step,
                               replace.attempt));
      },
      [replace](const absl::StatusOr<chief::ShardCalls::Replaced>& answer) {
        return chief::ReplaceAnswered{replace.round, replace.server, answer};
      });
}

void ChiefProcess::Do(const chief::CloseTokens& close) {
  Ask<bool>(
      0,
      [](ServerProcess& ps, const server::ChiefCommands::Chief& chief,
         const World::Reply<bool>& reply) { reply(ps.CloseTokens(chief)); },
      [close](const absl::StatusOr<bool>& answer) {
        return chief::TokensClosed{close.round, answer.status()};
      });
}

void ChiefProcess::Do(const chief::BeginSnapshot& begin) {
  // The one before has posted its last event.
  waiting_.Until([this] { return !saver_ || saver_->done(); });
  saver_ = std::make_unique<Waiting>(job_.world, number_);
  for (auto& server : calls_) server->set_waiting(*saver_);
  saver_->Start([this, begin] { WriteCheckpoint(begin); });
}

void ChiefProcess::WriteCheckpoint(const chief::BeginSnapshot& begin) {
  const bool skips =
      job_.Has(PlantedBug::kNoLastCheckpoint)
          ? begin.step == job_.options.steps
          : job_.Has(PlantedBug::kStopWithoutCheckpoint) && job_.stop_wanted;
  if (skips) {
    Post(chief::SnapshotBegun{begin.step});
    return Post(chief::SnapshotDone{begin.step});
  }
  const absl::Status begun =
      group_.BeginSnapshot(begin.step, begin.attempt).status();
  Post(chief::SnapshotBegun{begin.step, begun});
  if (!begun.ok()) return;
  absl::Status written;
  if (!CopyServers(begin.step)) {
    written = absl::UnavailableError("the copy could not be read");
  }
  Post(chief::SnapshotDone{begin.step, written});
}

bool ChiefProcess::CopyServers(int64_t step) {
  const uint64_t epoch = group_.epoch();
  const int64_t removed = job_.unfinished_removed;
  Job::Checkpoint checkpoint;
  checkpoint.settings = driver_.ManifestSettings();
  for (const int parts : job_.options.parts) {
    checkpoint.servers.emplace_back(parts);
  }
  for (const int server : group_.used()) {
    auto parts = calls_[server]->ReadAll(*saver_, epoch);
    if (!parts.ok()) return false;
    if (!job_.plan.mirrored) {
      checkpoint.servers[server] = *std::move(parts);
      continue;
    }
    // Those that it sums, as SaveCheckpoint() reads them.
    for (size_t i = 0; i < parts->size(); ++i) {
      if (plan_.parts[i].server != server) continue;
      const int holder = job_.plan.parts[i].server;
      const size_t first = job_.promises.FirstPart(holder);
      checkpoint.servers[holder][i - first] = (*parts)[i];
    }
  }
  // As SaveCheckpoint() reads once more before it commits, and as
  // CheckpointWriter::Commit() renames what it has written.
  if (!calls_[group_.used().back()]->ReadAll(*saver_, epoch).ok() ||
      removed != job_.unfinished_removed) {
    return false;
  }
  job_.promises.OnCheckpoint(step, checkpoint.servers);
  if (job_.is_compatible()) {
    job_.compatible.OnCheckpoint(step, checkpoint.servers);
  }
  job_.checkpoints[step] = std::move(checkpoint);
  return true;
}

void ChiefProcess::Do(const chief::CheckSaved& check) {
  Post(chief::SavedChecked{check.step, job_.checkpoints.count(check.step) > 0});
}

void ChiefProcess::Do(const chief::LookForEnd&) {
  const int64_t latest = LatestStep().value_or(-1);
  if (latest >= job_.options.steps) Post(chief::EndFound{latest});
}

void ChiefProcess::Do(const chief::Say& say) {
  job_.Trace([&] { return absl::StrCat("chief: ", say.text); });
}

void ChiefProcess::Do(const chief::JobReport& report) {
  chief::Write(report, status_table_, job_.world.Now());
  if (std::holds_alternative<chief::TrainingBegun>(report)) {
    status_table_.PublishPlan(plan_);
  }
  const auto* reached = std::get_if<chief::StateReached>(&report);
  if (reached == nullptr || reached->state < JobState::kDone) return;
  if (job_.chief != this) return;  // it is another chief's job
  job_.done = true;
  job_.ended_as = reached->state;
  job_.ended_because = reached->reason;
}

void ChiefProcess::Do(const chief::Finish& finish) {
  finished_ = true;
  Exit(ExitCodeOf(finish.status) == kExitLost ? State::kRestartMe
                                              : State::kExited);
}

std::string ChiefProcess::WaitsFor() const {
  std::string text =
      absl::StrCat("at step ", driver_.step(), HasPlan() ? "" : ", not open");
  for (const chief::MembershipTable::Member& member : members_.Members()) {
    if (member.state == chief::MembershipTable::State::kAlive) continue;
    absl::StrAppend(&text, ", ", member.task.ToString(), " is away");
  }
  for (const ServerProcess* server : job_.servers) {
    if (server != nullptr) absl::StrAppend(&text, ", ", server->WaitsFor());
  }
  return text;
}

}  // namespace lockstep::simulation
