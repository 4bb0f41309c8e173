#include "deploy/cli/status/steer_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/flags/nearest_match.h"
#include "common/flags/wrap_text.h"
#include "deploy/cli/status/status_report.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr absl::Duration kPollEvery = absl::Milliseconds(100);

using IsSo = std::function<bool(const JobStatus&)>;

constexpr char kReplicas[] = "replicas_to_aggregate";
constexpr char kRate[] = "learning_rate";

absl::Status CannotSet(const std::string& name, const std::string& value,
                       bool has_value) {
  if (name != kReplicas && name != kRate) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(name), " cannot be changed while the job runs; ", kReplicas,
        " and ", kRate, " can",
        DidYouMean(name, std::vector<std::string>{kReplicas, kRate})));
  }
  if (!has_value) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no value; write ", name, "=",
                     name == kRate ? "NUMBER" : "COUNT"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is \"", Printable(value), "\", but must be a ",
      name == kRate ? "number" : "whole number", ", and given once"));
}

absl::StatusOr<int> ParseWorker(absl::string_view text) {
  absl::string_view index = text;
  absl::ConsumePrefix(&index, "worker:");
  int worker = -1;
  if (absl::SimpleAtoi(index, &worker) && worker >= 0) return worker;
  return absl::InvalidArgumentError(
      absl::StrCat("worker is \"", Printable(text),
                   "\"; name it by its index, such as 1 or worker:1"));
}

absl::StatusOr<IsSo> AskToChange(CoordinatorClient& chief,
                                 const CoordinatorClient::Change& change) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t revision,
                            chief.ChangeSettings(change, kTimeout));
  return IsSo([revision](const JobStatus& status) {
    // A later change may already be in effect, too.
    return status.settings.revision >= revision;
  });
}

absl::StatusOr<IsSo> AskToRemove(CoordinatorClient& chief, int worker) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IsSo changed,
                            AskToChange(chief, {.remove_worker = worker}));
  return IsSo([changed, worker](const JobStatus& status) {
    // Other changes may come first, since the worker finishes its pass.
    const std::vector<int>& workers = status.settings.workers;
    return changed(status) &&
           std::find(workers.begin(), workers.end(), worker) == workers.end();
  });
}

absl::StatusOr<IsSo> AskForCheckpoint(CoordinatorClient& chief) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t step, chief.Checkpoint(kTimeout));
  return IsSo([step](const JobStatus& status) {
    return status.last_checkpoint_step >= step;
  });
}

std::string Describe(const JobStatus& status) {
  return absl::StrCat(
      "job ", Printable(status.job_name), ": ", ShownState(status), ", step ",
      status.step, ", ", StepText(status.settings), ", learning_rate ",
      status.settings.learning_rate, ", ",
      status.last_checkpoint_step < 0
          ? "no checkpoint yet"
          : absl::StrCat("last checkpoint ", status.last_checkpoint_step));
}

absl::StatusOr<JobStatus> WaitUntil(const IsSo& so, CoordinatorClient& chief,
                                    const ChiefFlags& flags,
                                    absl::Duration timeout) {
  const absl::Time deadline = Clock::Real().Now() + timeout;
  while (true) {
    absl::StatusOr<JobStatus> status = chief.GetStatus(kTimeout);
    if (!status.ok()) return flags.ExplainSilence(status.status());
    // Asked before the end of the job is looked at: its last checkpoint may be
    // the one.
    if (so(*status)) return status;
    if (IsFinal(status->state)) {
      return absl::FailedPreconditionError(
          "the job ended before the request was in effect");
    }
    if (Clock::Real().Now() > deadline) {
      const std::string trouble =
          status->checkpoint_trouble.empty()
              ? "it waits for the end of a step; `lockstep status` shows why"
              : absl::StrCat("the newest checkpoint failed: ",
                             Printable(status->checkpoint_trouble));
      return absl::DeadlineExceededError(
          absl::StrCat("not in effect within ", absl::FormatDuration(timeout),
                       ": ", trouble, "; the request remains"));
    }
    absl::SleepFor(kPollEvery);
  }
}

}  // namespace

absl::StatusOr<CoordinatorClient::Change> ParseSettings(
    const std::vector<std::string>& assignments) {
  CoordinatorClient::Change change;
  for (const std::string& assignment : assignments) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(assignment, absl::MaxSplits('=', 1));
    int count = 0;
    double number = 0;
    if (parts.first == kReplicas && !change.replicas_to_aggregate.has_value() &&
        absl::SimpleAtoi(parts.second, &count)) {
      change.replicas_to_aggregate = count;
    } else if (parts.first == kRate && !change.learning_rate.has_value() &&
               absl::SimpleAtod(parts.second, &number)) {
      change.learning_rate = number;
    } else {
      return CannotSet(parts.first, parts.second,
                       absl::StrContains(assignment, '='));
    }
  }
  return change;
}

SteerCommands::Command& SteerCommands::Add(CLI::App& parent,
                                           const std::string& name,
                                           const std::string& description) {
  CLI::App* app = parent.add_subcommand(name, description);
  Command& command = commands_.emplace_back(Command{app, ChiefFlags(), {}});
  command.chief.AddTo(*app);
  app->add_option("--timeout", command.timeout,
                  "Seconds to wait until the request is in effect.")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  return command;
}

void SteerCommands::AddChange(CLI::App& parent, const std::string& name,
                              const std::string& description, bool paused) {
  Add(parent, name, description).ask = [paused](CoordinatorClient& chief) {
    return AskToChange(chief, {.paused = paused});
  };
}

SteerCommands::SteerCommands(CLI::App& parent) {
  Add(parent, "checkpoint",
      "Makes a running job write a checkpoint after the current step.")
      .ask = AskForCheckpoint;
  AddChange(parent, "pause",
            "Pauses a running job between two steps, with all its state.",
            true);
  AddChange(parent, "resume", "Resumes a paused job.", false);
  Command& set =
      Add(parent, "set",
          "Changes a running job, on all servers at once, from a "
          "step boundary on. The change lasts until the job ends and "
          "survives restarts.");
  set.app
      ->add_option("setting", assignments_,
                   "replicas_to_aggregate=COUNT, learning_rate=NUMBER.")
      ->required();
  set.ask = [this](CoordinatorClient& chief) -> absl::StatusOr<IsSo> {
    LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorClient::Change change,
                              ParseSettings(assignments_));
    return AskToChange(chief, change);
  };
  Command& remove =
      Add(parent, "remove",
          "Removes a worker from a running job with elastic_workers. "
          "The worker finishes its pass first.");
  remove.app
      ->add_option("worker", worker_, "The worker, such as 1 or worker:1.")
      ->required();
  remove.ask = [this](CoordinatorClient& chief) -> absl::StatusOr<IsSo> {
    LOCKSTEP_ASSIGN_OR_RETURN(const int worker, ParseWorker(worker_));
    return AskToRemove(chief, worker);
  };
}

bool SteerCommands::chosen() const {
  return std::any_of(commands_.begin(), commands_.end(),
                     [](const Command& c) { return c.app->parsed(); });
}

int SteerCommands::Run(Terminal& terminal, std::ostream& err) const {
  for (const Command& command : commands_) {
    if (command.app->parsed()) return Run(command, terminal, err);
  }
  return kUsageExitCode;
}

int SteerCommands::Run(const Command& command, Terminal& terminal,
                       std::ostream& err) {
  const absl::StatusOr<std::string> address = command.chief.Address();
  if (!address.ok()) {
    return RefuseCommand(*command.app, address.status(),
                         FlagsExitCode(address.status()), err);
  }
  CoordinatorClient chief(*address);
  const absl::StatusOr<IsSo> so = command.ask(chief);
  if (!so.ok()) {
    // Also the chief's refusal of a value, such as replicas_to_aggregate=0.
    const bool usage = absl::IsInvalidArgument(so.status());
    return RefuseCommand(*command.app,
                         command.chief.ExplainSilence(so.status()),
                         usage ? kUsageExitCode : kNoAnswer, err);
  }
  const absl::StatusOr<JobStatus> status =
      WaitUntil(*so, chief, command.chief, absl::Seconds(command.timeout));
  if (!status.ok()) {
    return RefuseCommand(*command.app, status.status(), kNoAnswer, err);
  }
  terminal.Print(WrapText(Describe(*status), terminal.Columns(), 2) + "\n");
  return 0;
}

}  // namespace lockstep::cli
