#include "tests/unit/chief/job/job_driver_fixture.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {
namespace {

std::string Attempt(int64_t attempt) {
  return attempt > 0 ? absl::StrCat(" #", attempt) : "";
}

// Each action in a few words.
struct Words {
  std::string operator()(const Take& take) const {
    return absl::StrCat("take ", take.server, " at ", take.step,
                        take.commit_until > take.step
                            ? absl::StrCat(" until ", take.commit_until)
                            : "",
                        Attempt(take.attempt));
  }
  std::string operator()(const TellCommit& tell) const {
    return absl::StrCat("tell of commit ", tell.step, Attempt(tell.attempt));
  }
  std::string operator()(const Commit& commit) const {
    return absl::StrCat("commit ", commit.step, Attempt(commit.attempt));
  }
  std::string operator()(const Expire& expire) const {
    return absl::StrCat("expire ", expire.worker, " of ", expire.incarnation,
                        " on ", expire.server, Attempt(expire.attempt));
  }
  std::string operator()(const Replace& replace) const {
    return absl::StrCat("replace ", replace.worker, " on ", replace.server,
                        Attempt(replace.attempt));
  }
  std::string operator()(const CloseTokens&) const { return "close tokens"; }
  std::string operator()(const BeginSnapshot& begin) const {
    return absl::StrCat("copy ", begin.step);
  }
  std::string operator()(const CheckSaved& check) const {
    return absl::StrCat("check ", check.step);
  }
  std::string operator()(const LookForEnd&) const { return "look for the end"; }
  std::string operator()(const Recover& recover) const {
    const std::optional<int64_t>& step = recover.request.step;
    return step.has_value() ? absl::StrCat("recover ", *step) : "recover";
  }
  std::string operator()(const OpenSettings&) const { return "open settings"; }
  std::string operator()(const CloseSettings&) const {
    return "close settings";
  }
  std::string operator()(const TakeOut& out) const {
    return absl::StrCat("take out ", out.worker,
                        out.why == TakeOut::Why::kIfAsked ? " if asked" : "",
                        out.why == TakeOut::Why::kAway ? " (away)" : "");
  }
  std::string operator()(const Tuned& tuned) const {
    return absl::StrCat("tuned to ", tuned.replicas);
  }
  std::string operator()(const Say&) const { return ""; }
  std::string operator()(const SumUp&) const { return "sum up"; }
  std::string operator()(const Finish& finish) const {
    return absl::StrCat("finish ", finish.is_writing ? "while writing " : "",
                        finish.status.ok() ? "OK" : finish.status.ToString());
  }
  std::string operator()(const JobReport& report) const {
    return std::visit(*this, report);
  }
  std::string operator()(const StepReached& report) const {
    return absl::StrCat("at ", report.step);
  }
  std::string operator()(const TrainingBegun& report) const {
    return absl::StrCat("trains at ", report.step);
  }
  std::string operator()(const StateReached& report) const {
    const char* const names[] = {"",     "starting", "training", "finishing",
                                 "done", "failed",   "stopped"};
    return absl::StrCat(names[static_cast<int>(report.state)],
                        report.reason.empty() ? "" : ": ", report.reason,
                        report.hold ? " (held)" : "");
  }
  std::string operator()(const Waits&) const { return ""; }
  std::string operator()(const SettingsInEffect& report) const {
    return report.settings.revision > 0
               ? absl::StrCat("settings ", report.settings.revision)
               : "";
  }
  std::string operator()(const WentBack& report) const {
    return absl::StrCat("went back to ", report.step);
  }
  std::string operator()(const LossesSoFar& report) const {
    return absl::StrCat("lost: ", report.losses.recoveries, " ",
                        report.losses.steps_redone, " ",
                        report.losses.steps_repeated);
  }
  std::string operator()(const ProcessDied& report) const {
    return absl::StrCat(report.death.task, " died with ", report.death.held);
  }
  std::string operator()(const StepsRedone& report) const {
    return absl::StrCat("redone: ", report.what);
  }
  std::string operator()(const CheckpointSaved& report) const {
    return absl::StrCat("saved ", report.step);
  }
  std::string operator()(const CheckpointTroubled& report) const {
    return absl::StrCat("unsaved: ", report.why);
  }
  std::string operator()(const ScoreTroubled& report) const {
    return absl::StrCat("unscored: ", report.why);
  }
  std::string operator()(const StateSaved& report) const {
    return report.saved ? "all is saved" : "not all is saved";
  }
  std::string operator()(const Noticed& report) const {
    return absl::StrCat("notice: ", report.text);
  }
};

}  // namespace

JobDriverTest::JobDriverTest() {
  job.train_steps = 100;
  job.replicas_to_aggregate = 2;
  job.lease = absl::Seconds(4);
  job.stall_timeout = absl::Seconds(2);
  job.max_wait = absl::Seconds(60);
}

void JobDriverTest::Make() {
  job.total_num_replicas = workers;
  std::vector<TaskId> tasks;
  for (int i = 0; i < servers; ++i) tasks.push_back({TaskType::kPs, i});
  for (int i = 0; i < workers; ++i) tasks.push_back({TaskType::kWorker, i});
  tasks.push_back({TaskType::kEvaluator, 0});
  members = std::make_unique<MembershipTable>(tasks, job.lease);
  options.num_servers = servers;
  driver = std::make_unique<JobDriver>(job, options, *members, now);
}

void JobDriverTest::Join(TaskType type, int index, uint64_t incarnation) {
  ASSERT_EQ(members->Register({type, index}, incarnation, now),
            absl::OkStatus());
}

void JobDriverTest::JoinAll() {
  for (int i = 0; i < servers; ++i) Join(TaskType::kPs, i);
  for (int i = 0; i < workers; ++i) Join(TaskType::kWorker, i);
}

void JobDriverTest::Leave(int worker, LeaveCause cause,
                          const std::string& reason) {
  const TaskId task{TaskType::kWorker, worker};
  const absl::Status left = members->Leave(task, members->Get(task).incarnation,
                                           cause, reason, nullptr, now);
  // That one is repeated until servers know.
  ASSERT_EQ(left.ok(), cause != LeaveCause::kEndOfInput) << left;
}

JobDriverTest::Actions JobDriverTest::Open(int64_t step) {
  Make();
  JoinAll();
  On(ModelDescribed{});
  Started();
  return Recovered(step, step > 0 ? step : -1);
}

JobDriverTest::Actions JobDriverTest::On(const JobEvent& event) {
  Actions words;
  for (const JobAction& action : driver->On(event, now)) {
    if (const auto* say = std::get_if<Say>(&action)) said.push_back(say->text);
    if (const auto* take = std::get_if<Take>(&action)) {
      newest_take[take->server] = take->call;
    }
    if (const auto* recover = std::get_if<Recover>(&action)) {
      request = recover->request;
    }
    if (const auto* close = std::get_if<CloseSettings>(&action)) {
      over = close->over;
    }
    if (const auto* report = std::get_if<JobReport>(&action)) {
      if (const auto* told = std::get_if<ProcessDied>(report)) {
        died_at = told->death.at;
      }
      if (const auto* told = std::get_if<LossesSoFar>(report)) {
        stood_still = told->losses.stood_still;
      }
      if (const auto* told = std::get_if<CheckpointSaved>(report)) {
        saved_at = told->at;
      }
      if (const auto* told = std::get_if<Waits>(report)) {
        waits.clear();
        for (const StatusTable::Wait& wait : told->waits) {
          waits.push_back(absl::StrCat(wait.owner, ": ", wait.waits_for));
        }
      }
    }
    std::string word = std::visit(Words(), action);
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

JobDriverTest::Actions JobDriverTest::Pass(absl::Duration time) {
  return PassWithout({TaskType::kChief, 0}, time);
}

JobDriverTest::Actions JobDriverTest::PassWithout(const TaskId& silent,
                                                  absl::Duration time) {
  return PassWhile([&](const TaskId& task) { return task != silent; }, time);
}

JobDriverTest::Actions JobDriverTest::PassWithout(int index,
                                                  absl::Duration time) {
  return PassWhile([&](const TaskId& task) { return task.index != index; },
                   time);
}

JobDriverTest::Actions JobDriverTest::PassWhile(
    absl::FunctionRef<bool(const TaskId& task)> beats, absl::Duration time) {
  Actions all;
  const absl::Time until = now + time;
  while (now < until) {
    now = std::min(until, now + absl::Milliseconds(100));
    for (const MembershipTable::Member& member : members->Members()) {
      if (!beats(member.task)) continue;
      members->Heartbeat(member.task, member.incarnation, nullptr, now)
          .IgnoreError();
    }
    const Actions actions = Tick();
    all.insert(all.end(), actions.begin(), actions.end());
  }
  return all;
}

JobDriverTest::Actions JobDriverTest::Recovered(int64_t step, int64_t saved,
                                                RecoveryPlan::Action action,
                                                bool redo) {
  RoundOutcome outcome;
  outcome.plan.action = action;
  outcome.plan.step = step;
  outcome.plan.redo = redo;
  outcome.step = step;
  outcome.checkpoint_step = saved;
  outcome.epoch = static_cast<uint64_t>(++round);
  outcome.servers = driver->Servers();
  return On(RecoveryDone{outcome});
}

JobDriverTest::Actions JobDriverTest::Prepared(int server, int64_t attempt,
                                               std::vector<int> contributors) {
  TakeResult answer;
  answer.prepared = true;
  answer.attempt = attempt;
  answer.contributors = std::move(contributors);
  return Waiting(server, answer);
}

JobDriverTest::Actions JobDriverTest::Waiting(int server,
                                              const TakeResult& answer) {
  return On(TakeAnswered{round, server, driver->step(), absl::OkStatus(),
                         answer, newest_take[server]});
}

JobDriverTest::Actions JobDriverTest::TakeFailed(int server,
                                                 const absl::Status& status) {
  return On(TakeAnswered{
      round, server, driver->step(), status, {}, newest_take[server]});
}

JobDriverTest::Actions JobDriverTest::Committed(int64_t attempt,
                                                const absl::Status& status,
                                                int64_t redone_attempt) {
  return On(CommitAnswered{round, driver->step() + 1, attempt, status,
                           redone_attempt});
}

JobDriverTest::Actions JobDriverTest::Step() {
  for (int server = 0; server < servers; ++server) Prepared(server);
  return Committed();
}

JobDriverTest::Actions JobDriverTest::Expired(int server, int worker,
                                              int64_t attempt,
                                              bool held_announcement) {
  ShardCalls::Expired expired;
  expired.held_announcement = held_announcement;
  expired.step = driver->step();
  expired.attempt = attempt;
  expired.incarnation = 1;
  return On(ExpireAnswered{round, server, worker, expired});
}

JobDriverTest::Actions JobDriverTest::Closed(const absl::Status& status) {
  return On(TokensClosed{round, status});
}

}  // namespace lockstep::chief
