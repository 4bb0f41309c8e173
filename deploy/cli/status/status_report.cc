#include "deploy/cli/status/status_report.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/flags/wrap_text.h"
#include "common/text/count_text.h"
#include "deploy/cli/status/status_text.h"
#include "deploy/cli/text/text_format.h"
#include "deploy/cli/text/text_table.h"

namespace lockstep::cli {
namespace {

using Align = TextTable::Align;

constexpr size_t kIndent = 2;

std::string Headline(const JobStatus& status) {
  std::string line =
      absl::StrCat("job ", Printable(status.job_name), ": ", ShownState(status),
                   ", step ", status.step, " of ", status.train_steps, ", ",
                   FormatSeconds(status.training_time));
  if (!status.reason.empty()) {
    absl::StrAppend(&line, "; ", Printable(status.reason));
  }
  return line;
}

std::string Figures(const JobStatus& status) {
  if (status.step <= 0) return "no step yet";
  std::string line = !status.has_loss()
                         ? "no loss yet"
                         : absl::StrCat("loss ", FormatFigure(status.loss, 4));
  AppendSpeed(status, line);
  if (status.evaluation.has_value()) {
    absl::StrAppend(&line, ", ", ScoreText(*status.evaluation), " at step ",
                    status.evaluation->step);
  }
  return line;
}

std::string Checkpoint(const JobStatus& status) {
  std::string line = "no checkpoint yet";
  if (status.last_checkpoint_step >= 0) {
    line = absl::StrCat("last checkpoint: step ", status.last_checkpoint_step);
  }
  if (!status.checkpoint_trouble.empty()) {
    absl::StrAppend(&line, "; the newest attempt failed: ",
                    Printable(status.checkpoint_trouble));
  }
  return line;
}

// Lists the changes by an operator or a schedule.
std::string Changes(const JobStatus& status) {
  const Settings& settings = status.settings;
  const std::string now =
      settings.learning_rate_now > 0
          ? absl::StrCat(", by its schedule ", settings.learning_rate_now)
          : "";
  return absl::StrCat(settings.paused ? "paused; " : "", StepText(settings),
                      ", learning_rate ", settings.learning_rate, now,
                      " (revision ", settings.revision, ")");
}

std::vector<std::string> MemberRow(const MemberStatus& member) {
  std::vector<std::string> row = {
      member.task, std::string(MemberStateName(member.state)), "-"};
  if (member.since_heartbeat.has_value()) {
    row.back() = FormatAge(*member.since_heartbeat);
  }
  if (!member.counts.has_value()) return row;
  const WorkerCounts& counts = *member.counts;
  row.push_back(counts.activity);
  row.push_back(FormatAge(counts.activity_age));
  // An evaluator makes no passes.
  if (!absl::StartsWith(member.task, "worker ")) return row;
  row.push_back(absl::StrCat(counts.passes));
  row.push_back(absl::StrCat(counts.accepted));
  row.push_back(absl::StrCat(counts.stale));
  return row;
}

std::string MemberTable(const JobStatus& status, size_t width) {
  TextTable table({{.title = "task"},
                   {.title = "state"},
                   {.title = "heard", .align = Align::kRight},
                   // "computes step 12345"
                   {.title = "doing", .shrinks = true, .wanted = 19},
                   {.title = "since", .align = Align::kRight},
                   {.title = "passes", .align = Align::kRight},
                   {.title = "accepted", .align = Align::kRight},
                   {.title = "stale", .align = Align::kRight}});
  for (const MemberStatus& member : status.members) {
    table.AddRow(MemberRow(member));
  }
  return table.Format(width);
}

std::string Waits(const JobStatus& status, size_t width) {
  if (status.waits.empty()) return "no waits\n";
  std::string out = "waits:\n";
  for (const WaitStatus& wait : status.waits) {
    const std::string line =
        absl::StrCat(std::string(kIndent, ' '), WaitText(wait));
    absl::StrAppend(&out, WrapText(line, width, 2 * kIndent), "\n");
  }
  return out;
}

// What the chief has told of, such as changes that it made by itself.
std::string Notices(const JobStatus& status, size_t width) {
  if (status.notices.empty()) return "";
  std::string out = "notices:\n";
  for (const Notice& notice : status.notices) {
    const std::string line =
        absl::StrCat(std::string(kIndent, ' '), Printable(notice.text));
    absl::StrAppend(&out, WrapText(line, width, 2 * kIndent), "\n");
  }
  return out;
}

}  // namespace

std::string StepText(const Settings& settings) {
  if (settings.micro_batches_per_step == 0) {
    return absl::StrCat("replicas_to_aggregate ",
                        settings.replicas_to_aggregate);
  }
  return absl::StrCat(
      "micro_batches_per_step ", settings.micro_batches_per_step,
      ", micro_batches_per_push ", settings.micro_batches_per_push);
}

std::string FormatWorkerSummary(const JobStatus& status, size_t width) {
  const std::vector<MemberStatus> workers = WorkersOf(status);
  if (workers.empty()) return "";
  TextTable table({{.title = "worker"},
                   {.title = "passes", .align = Align::kRight},
                   {.title = "accepted", .align = Align::kRight},
                   {.title = "stale", .align = Align::kRight},
                   {.title = "waited", .align = Align::kRight}});
  for (const MemberStatus& worker : workers) {
    const WorkerCounts counts = worker.counts.value_or(WorkerCounts());
    // The title says "worker" already.
    table.AddRow({std::string(absl::StartsWith(worker.task, "worker ")
                                  ? worker.task.substr(7)
                                  : worker.task),
                  absl::StrCat(counts.passes), absl::StrCat(counts.accepted),
                  absl::StrCat(counts.stale), FormatSeconds(counts.waiting)});
  }
  return table.Format(width);
}

std::string FormatLosses(const JobStatus& status) {
  const LossStatus& losses = status.losses;
  if (!losses.any()) return "";
  return absl::StrCat(
      "interruptions cost: ", CountText(losses.steps_redone, "step"),
      " redone, ", CountText(losses.steps_repeated, "committed step"),
      " repeated, ", FormatSeconds(losses.stood_still), " without a server (",
      CountText(losses.recoveries, "time"), ")");
}

std::string FormatDeaths(const JobStatus& status, size_t width) {
  if (status.deaths.empty()) return "";
  const absl::string_view at_present =
      status.settings.paused ? "; the job is paused" : "; the job stands still";
  std::string out = "interruptions:\n";
  for (const DeathStatus& death : status.deaths) {
    const std::string line = absl::StrCat(
        std::string(kIndent, ' '), Printable(death.task), ", ",
        FormatAge(death.since), " ago",
        death.reason.empty() ? ""
                             : absl::StrCat(" (", Printable(death.reason), ")"),
        ": held ", Printable(death.held), "; redone: ",
        death.redone.empty() ? "nothing" : Printable(death.redone),
        death.stood_still.has_value()
            ? absl::StrCat("; the job stood still for ",
                           FormatSeconds(*death.stood_still))
            : std::string(at_present));
    absl::StrAppend(&out, WrapText(line, width, 2 * kIndent), "\n");
  }
  return out;
}

std::string FormatDoneLine(const JobStatus& status) {
  std::string line = absl::StrCat("done: step ", status.step);
  if (!IsFinal(status.state)) {
    absl::StrAppend(&line, " when last asked");
  } else if (status.step < status.train_steps) {
    absl::StrAppend(&line, " of ", status.train_steps,
                    ", since the input has ended");
  }
  // A chief without steps of its own has no loss.
  if (status.training_time > absl::ZeroDuration() && status.has_loss()) {
    absl::StrAppend(&line, ", loss ", FormatFigure(status.loss, 4));
  }
  if (status.evaluation.has_value()) {
    absl::StrAppend(&line, ", ", ScoreText(*status.evaluation));
    if (status.evaluation->step != status.step) {
      absl::StrAppend(&line, " at step ", status.evaluation->step);
    }
  }
  if (status.example_unit != "examples") AppendSpeed(status, line);
  absl::StrAppend(&line, ", ", FormatSeconds(status.training_time));
  if (!status.reason.empty()) {
    absl::StrAppend(&line, "; ", Printable(status.reason));
  }
  return line;
}

std::string FormatStatusReport(const JobStatus& status, size_t width) {
  std::string out;
  for (const std::string& line :
       {Headline(status), Figures(status), Checkpoint(status)}) {
    absl::StrAppend(&out, WrapText(line, width, kIndent), "\n");
  }
  for (const std::string& trouble : status.security_troubles) {
    absl::StrAppend(
        &out, WrapText("certificates: " + Printable(trouble), width, kIndent),
        "\n");
  }
  const Settings& settings = status.settings;
  const bool scheduled = settings.learning_rate_now > 0 &&
                         settings.learning_rate_now != settings.learning_rate;
  // Settings as the job file has them need no line.
  if (settings.revision > 0 || scheduled) {
    absl::StrAppend(&out, WrapText(Changes(status), width, kIndent), "\n");
  }
  if (const std::string losses = FormatLosses(status); !losses.empty()) {
    absl::StrAppend(&out, WrapText(losses, width, kIndent), "\n");
  }
  return absl::StrCat(out, "\n", MemberTable(status, width), "\n",
                      Waits(status, width), FormatDeaths(status, width),
                      Notices(status, width));
}

}  // namespace lockstep::cli
