#include "chief/job/member_deaths.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/passing_error.h"
#include "common/base/status_macros.h"

namespace lockstep::chief {

absl::Status MemberDeaths::BuryAll() {
  for (const auto& dead : context_.members.TakeDead(context_.now)) {
    if (dead.task.type != TaskType::kWorker) {
      BuryOther(dead);
    } else if (absl::Status status = BuryWorker(dead); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

void MemberDeaths::BuryAfterTraining() {
  for (const auto& dead : context_.members.TakeDead(context_.now)) {
    if (dead.task.type != TaskType::kWorker) {
      BuryOther(dead);
    } else {
      burials_.Begin(dead, steps_.round(), context_.now, context_.out);
    }
  }
}

absl::Status MemberDeaths::BuryBeforeRound() {
  for (const auto& dead : context_.members.TakeDead(context_.now)) {
    if (dead.task.type != TaskType::kWorker) {
      BuryOther(dead);
    } else if (without_values_ && !steps_.opened()) {
      // Without values no server knows the worker, so there is nothing to
      // expire.
      LOCKSTEP_RETURN_IF_ERROR(
          workers_left_.CheckEnough(dead, context_.members.Members()));
      Buried(dead, ShardCalls::Expired());
    }
  }
  return absl::OkStatus();
}

void MemberDeaths::BuryOther(const MembershipTable::Dead& dead) {
  const std::string name = dead.task.ToString();
  context_.members.Buried(dead.task, dead.incarnation);
  if (dead.task.type != TaskType::kPs) {
    Warn(context_.out, absl::StrCat(name, " is gone (", dead.reason, ")"));
    if (dead.cause != DeathCause::kLeft) {
      context_.NoteDeath(name, dead.reason, "nothing");
    }
  } else if (!context_.servers.TakesPart(dead.task.index)) {
    Info(context_.out, absl::StrCat(name, " is gone (", dead.reason,
                                    "); it takes no part in the job"));
  } else if (dead.cause == DeathCause::kLeft &&
             (dead.task.index == 0 || !context_.servers.may_change())) {
    // A server that leaves was asked to end, so the job stops with a
    // checkpoint.
    context_.WantStop(
        StoppedStatus(absl::StrCat(name, " ", dead.reason), /*hold=*/false));
  } else {
    server_away_ = true;
    // A mirror that was left out has no share any more: see LeaveOut().
    if (dead.leave == LeaveCause::kCannotTakePart) {
      return Warn(context_.out, absl::StrCat(name, " ", dead.reason));
    }
    const std::string held = absl::StrCat("its share of step ", steps_.step());
    Warn(context_.out,
         absl::StrCat(name, " is gone (", dead.reason, "); it holds ", held));
    context_.NoteDeath(name, dead.reason, held);
  }
}

void MemberDeaths::OnFound(absl::Span<const ServerReport> reports) {
  for (const ServerReport& report : reports) {
    for (const WorkerStanding& worker : report.workers) {
      if (worker.input_ended) workers_left_.EndedInput(worker.worker);
    }
  }
}

void MemberDeaths::GiveUpTheAbsent(absl::Time since, bool stops, bool ended) {
  if (ended) {
    context_.servers.EndSteps();
  } else {
    context_.servers.BeginStepsAgain();
  }
  for (const int server : context_.servers.TakeBack()) {
    Warn(context_.out,
         absl::StrCat("ps ", server,
                      ", which was given up, is back and takes part again"));
  }
  for (const int server :
       context_.servers.GiveUp(since, context_.now, /*at_once=*/stops)) {
    // LeaveOut() has reported it.
    if (context_.members.Get({TaskType::kPs, server}).left_out) continue;
    Notify(context_.out,
           absl::StrCat("worker ", server, " and its mirror, ps ", server,
                        stops ? ", are away: the job stops without them"
                              : ", do not come back: the job goes on without "
                                "them"));
  }
}

void MemberDeaths::SendBackForPlan(const std::vector<int>& servers) {
  if (!steps_.opened() || servers == steps_.servers()) return;
  context_.members.ExpireAll(TaskType::kWorker, "the mirrors of the job change",
                             context_.now);
}

void MemberDeaths::LeaveOut(int server, const absl::Status& why) {
  if (IsPassing(why)) return;
  const bool is_left_out = context_.members.LeaveOut(
      {TaskType::kPs, server}, std::string(why.message()), context_.now);
  if (!is_left_out) return;  // it has died meanwhile
  Notify(context_.out,
         absl::StrCat("mirror ", server, " cannot take part (", why.message(),
                      "); the job goes on without it and worker ", server));
}

void MemberDeaths::TakeOutTheAbsent(bool opened) {
  if (!context_.job.elastic_workers) return;
  for (const int server : context_.servers.given_up()) {
    context_.out.push_back(TakeOut{server, TakeOut::Why::kAway});
  }
  // Later, a worker that has left may be about to join again.
  if (!opened) return;
  for (const MembershipTable::Member& member : context_.members.Members()) {
    if (member.task.type != TaskType::kWorker ||
        member.state != MembershipTable::State::kLeft ||
        member.HasEndedInput()) {
      continue;
    }
    context_.out.push_back(TakeOut{member.task.index, TakeOut::Why::kLeft});
  }
}

absl::Status MemberDeaths::BuryWorker(const MembershipTable::Dead& dead) {
  // Any worker that took its place would fill the table, too.
  if (dead.leave == LeaveCause::kNoRoom) {
    return absl::ResourceExhaustedError(
        absl::StrCat(dead.task.ToString(), " ", dead.reason));
  }
  absl::Status enough =
      workers_left_.CheckEnough(dead, context_.members.Members());
  if (enough.ok()) {
    burials_.Begin(dead, steps_.round(), context_.now, context_.out);
  }
  return enough;
}

absl::Status MemberDeaths::OnExpireAnswered(const ExpireAnswered& event,
                                            bool in_step) {
  const absl::StatusOr<WorkerBurials::Heard> heard =
      burials_.OnAnswer(event, steps_.servers(), context_.now, context_.out);
  if (!heard.ok()) return heard.status();
  // The attempt that ps task 0 has answered may be a new one: takes must name
  // it.
  if (heard->decided.has_value() && in_step) {
    steps_.OnAttempt(heard->decided->step, heard->decided->attempt,
                     context_.now, context_.out);
  }
  if (heard->buried.has_value()) Buried(*heard->buried, heard->held);
  return absl::OkStatus();
}

void MemberDeaths::Buried(const MembershipTable::Dead& dead,
                          const ShardCalls::Expired& expired) {
  const std::string name = dead.task.ToString();
  const std::string held = expired.held_announcement ? "an announcement"
                           : expired.held_token      ? "a token"
                                                     : "nothing";
  if (dead.cause == DeathCause::kUnknown) {
    Info(context_.out, absl::StrCat(name, " is let in; it was ", dead.reason));
  } else {
    Warn(context_.out,
         absl::StrCat(name, " is gone (", dead.reason, "); it held ", held));
  }
  // Other causes are not deaths: the worker left, was sent back or was unknown.
  if (dead.cause == DeathCause::kSilent ||
      dead.cause == DeathCause::kReplaced) {
    context_.NoteDeath(name, dead.reason, held,
                       expired.held_announcement
                           ? absl::StrCat("step ", expired.step + 1)
                           : "");
  }
  if (expired.held_announcement) context_.NoteRedone(expired.step);
  context_.members.Buried(dead.task, dead.incarnation);
  // Only after the burial: until then servers do not know it.
  if (dead.leave == LeaveCause::kEndOfInput) {
    workers_left_.EndedInput(dead.task.index);
  } else if (context_.job.elastic_workers && dead.cause == DeathCause::kLeft) {
    context_.out.push_back(TakeOut{dead.task.index, TakeOut::Why::kLeft});
  } else if (context_.job.elastic_workers &&
             (dead.cause == DeathCause::kSilent ||
              dead.cause == DeathCause::kWentBack)) {
    // It has no pass to finish any more, after which it would leave.
    context_.out.push_back(TakeOut{dead.task.index, TakeOut::Why::kIfAsked});
  }
}

}  // namespace lockstep::chief
