#include "deploy/cli/status/operator_command.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"
#include "common/flags/flag_parser.h"
#include "common/text/excerpt.h"
#include "common/text/utf8.h"
#include "deploy/cli/status/operator_security.h"
#include "deploy/cli/status/status_report.h"
#include "deploy/cli/tasks/local_cluster.h"
#include "deploy/cli/tasks/log_directory.h"
#include "deploy/cli/tasks/log_files.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(5);
// Short, so that a gap is visible while it lasts.
constexpr absl::Duration kWatchTimeout = absl::Seconds(1);

absl::StatusOr<std::string> CheckAddress(absl::string_view flag,
                                         absl::string_view text) {
  // The file chief.address ends with a line feed.
  const absl::StatusOr<HostPort> parsed =
      ParseHostPort(absl::StripAsciiWhitespace(text));
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", parsed.status().message()));
  }
  return parsed->ToString();
}

absl::Status RunIsOver(const std::string& directory, const RunResult& result) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the run of ", directory, " is over: ", Printable(result.summary),
      "; this command needs one that goes on"));
}

// True for the error of a call that the chief has not answered: none listens,
// or its end has cut the connection or the call.
bool IsSilence(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ||
         absl::IsCancelled(status);
}

}  // namespace

int RefuseCommand(const CLI::App& app, const absl::Status& status, int code,
                  std::ostream& err) {
  err << "lockstep " << app.get_name() << ": " << status.message() << "\n";
  return code;
}

void ChiefFlags::AddTo(CLI::App& app) {
  app.add_option("--chief", chief_, "Address of the chief, host:port.");
  app.add_option("--cluster", cluster_file_,
                 "JSON file with the cluster that the chief is in.");
  app.add_option("--log_dir", log_dir_, "Log directory of a `lockstep run`.");
  app.add_option(
      "--tls_dir", tls_dir_,
      "Directory with tls.crt, tls.key and ca.crt of an operator, if the "
      "job uses TLS; not needed with the --log_dir of a `lockstep run`.");
  app.add_option("--identity_map", identity_map_,
                 "File that gives roles to certificates with other names than "
                 "Lockstep's, if the job's programs have one.");
}

absl::StatusOr<std::string> ChiefFlags::Address() const {
  LOCKSTEP_RETURN_IF_ERROR(Secure());
  return ChiefAddress();
}

absl::Status ChiefFlags::Secure() const {
  std::string directory = tls_dir_;
  std::error_code ignored;
  if (const std::string own = absl::StrCat(log_dir_, "/", kOperatorTlsDir);
      directory.empty() && !log_dir_.empty() &&
      std::filesystem::exists(own, ignored)) {
    directory = own;
  }
  // The link of a run with --insecure does not exist, and that of a run which
  // is over leads nowhere.
  if (directory.empty()) {
    if (identity_map_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--identity_map is ", identity_map_,
                     ", but there is no --tls_dir: without certificates no "
                     "process has a role; name the operator's directory "
                     "with --tls_dir, or leave the map out"));
  }
  // The command itself says what is wrong, once, see ExplainCall().
  spdlog::set_level(spdlog::level::off);
  return UseOperatorCertificate(directory, identity_map_);
}

absl::Status ChiefFlags::CheckOne() const {
  const int given = static_cast<int>(!chief_.empty()) +
                    static_cast<int>(!cluster_file_.empty()) +
                    static_cast<int>(!log_dir_.empty());
  if (given == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      given, " of --chief, --cluster and --log_dir are given; give one"));
}

absl::StatusOr<std::string> ChiefFlags::ChiefAddress() const {
  LOCKSTEP_RETURN_IF_ERROR(CheckOne());
  if (!chief_.empty()) return CheckAddress("--chief", chief_);
  if (!cluster_file_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string json,
                              ReadFlagFile("--cluster", cluster_file_));
    return ChiefAddressOf(json, cluster_file_);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<Ended> ended, EndOfRun());
  if (ended.has_value()) return RunIsOver(log_dir_, ended->result);
  const std::string path = absl::StrCat(log_dir_, "/", kChiefAddressFile);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log_dir ", Printable(log_dir_),
        " is no run's; name the folder that `lockstep run` printed"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return CheckAddress(path, text);
}

absl::StatusOr<std::optional<ChiefFlags::Ended>> ChiefFlags::EndOfRun() const {
  if (log_dir_.empty() || !CheckOne().ok()) return std::nullopt;
  const std::string path = absl::StrCat(log_dir_, "/", kResultFile);
  std::error_code error;
  // Asked before the result is looked for, which a run writes before it leaves,
  // and after that: a new run removes the result of the one before.
  const bool left = LogDirectory::IsLeft(log_dir_);
  if (!std::filesystem::exists(path, error)) {
    if (!left || !LogDirectory::IsLeft(log_dir_)) return std::nullopt;
    return absl::FailedPreconditionError(absl::StrCat(
        "the run of ", log_dir_,
        " is over and left no result: it was ended by force, or had no room "
        "for one; the ends of its logs say how far it came"));
  }
  Ended ended;
  LOCKSTEP_ASSIGN_OR_RETURN(ended.json, ReadTextFile(path));
  LOCKSTEP_ASSIGN_OR_RETURN(ended.result, ParseResultJson(ended.json, path));
  return ended;
}

absl::Status ChiefFlags::ExplainSilence(const absl::Status& silence) const {
  // Only the directory of a run can explain a silence.
  if (log_dir_.empty() || !IsSilence(silence)) return silence;
  // The run may have ended since it was looked for.
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<Ended> ended, EndOfRun());
  if (ended.has_value()) return RunIsOver(log_dir_, ended->result);
  return absl::Status(
      silence.code(),
      absl::StrCat(
          silence.message(), "; the run of ", log_dir_,
          " goes on: its chief is being started again, or is suspended or too "
          "busy to answer, or the job is over and its programs still end "
          "(`lockstep logs --log_dir ",
          log_dir_, "`)"));
}

int FlagsExitCode(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? kNoAnswer : kUsageExitCode;
}

StatusCommand::StatusCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "status",
          "Shows the state of a running job and all its waits; for a `lockstep "
          "run` that has ended, the result in its --log_dir. Exit "
          "code: 0 the job runs or is done, 1 no chief answers, 2 bad flags, 4 "
          "it is paused, 5 it failed, 6 it was stopped.")),
      chief_(app_) {
  app_.add_flag("--json", json_,
                "Print one JSON object; with --watch, one on each line.");
  app_.add_flag("--watch", watch_, "Repeat until the job has ended.");
  app_.add_option("--interval", interval_,
                  "With --watch, seconds between two reports.")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app_.add_option("--patience", patience_,
                  "With --watch, seconds that a chief may be silent after its "
                  "first answer, e.g. during a restart.")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
}

int StatusCommand::ExitCodeOf(const JobStatus& status) {
  if (status.state == JobState::kFailed) return 5;
  if (status.state == JobState::kStopped) return 6;
  return status.settings.paused && !IsFinal(status.state) ? 4 : 0;
}

void StatusCommand::Show(const JobStatus& status, Terminal& terminal) const {
  if (json_) {
    // -1: on one line.
    const int indent = watch_ ? -1 : 2;
    terminal.Print(FormatStatusJson(status, indent) + "\n");
    return;
  }
  if (watch_) terminal.Clear();
  terminal.Print(FormatStatusReport(status, terminal.Columns()));
}

// On a terminal, shown below the chief's last answer.
void StatusCommand::ShowGap(const std::optional<JobStatus>& last,
                            absl::Duration silence, Terminal& terminal,
                            std::ostream& err) const {
  const std::string text =
      absl::StrCat("the chief has not answered for ", FormatAge(silence),
                   "; it may be started again (--patience ", patience_, ")\n");
  if (json_) {
    // Standard output has JSON alone.
    err << text;
    return;
  }
  if (terminal.live() && last.has_value()) Show(*last, terminal);
  terminal.Print(text);
}

int StatusCommand::ShowEnd(const ChiefFlags::Ended& ended,
                           Terminal& terminal) const {
  if (json_ && watch_) {
    // The file has several lines. Within a text of JSON a line feed is written
    // as \n, so that only those between go.
    std::string line = ended.json;
    line.erase(std::remove(line.begin(), line.end(), '\n'), line.end());
    terminal.Print(line + "\n");
  } else if (json_) {
    terminal.Print(ended.json);
  } else {
    terminal.Print(
        absl::StrCat(Printable(ended.result.summary), "; ended ",
                     // The clock may have been set back since.
                     FormatAge(std::max(absl::ZeroDuration(),
                                        absl::Now() - ended.result.ended_at)),
                     " ago\n"));
  }
  return ExitCodeOf({.state = ended.result.state});
}

int StatusCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::StatusOr<std::optional<ChiefFlags::Ended>> ended =
      chief_.EndOfRun();
  // Address() reports an error of it.
  if (ended.ok() && ended->has_value()) return ShowEnd(**ended, terminal);
  const absl::StatusOr<std::string> address = chief_.Address();
  if (!address.ok()) {
    return RefuseCommand(app_, address.status(),
                         FlagsExitCode(address.status()), err);
  }
  CoordinatorClient client(*address);
  const absl::StatusOr<JobStatus> status = client.GetStatus(kTimeout);
  if (!status.ok()) return ShowSilence(status.status(), terminal, err);
  Show(*status, terminal);
  if (!watch_ || IsFinal(status->state)) return ExitCodeOf(*status);
  return Watch(client, terminal, err);
}

int StatusCommand::ShowSilence(const absl::Status& silence, Terminal& terminal,
                               std::ostream& err) const {
  // The run may have ended since it was looked for.
  const absl::StatusOr<std::optional<ChiefFlags::Ended>> ended =
      chief_.EndOfRun();
  if (ended.ok() && ended->has_value()) return ShowEnd(**ended, terminal);
  return RefuseCommand(app_, chief_.ExplainSilence(silence), kNoAnswer, err);
}

// If there is a log directory, its result shows the end of the job: a chief may
// end before it has answered all callers.
int StatusCommand::Watch(CoordinatorClient& chief, Terminal& terminal,
                         std::ostream& err) const {
  std::optional<JobStatus> last;
  absl::Time answered = Clock::Real().Now();
  while (true) {
    absl::SleepFor(absl::Seconds(interval_));
    const absl::StatusOr<JobStatus> status = chief.GetStatus(kWatchTimeout);
    if (status.ok()) {
      last = *status;
      answered = Clock::Real().Now();
      Show(*status, terminal);
      if (IsFinal(status->state)) return ExitCodeOf(*status);
      continue;
    }
    const absl::StatusOr<std::optional<ChiefFlags::Ended>> ended =
        chief_.EndOfRun();
    if (!ended.ok()) {
      return RefuseCommand(app_, ended.status(), kNoAnswer, err);
    }
    if (ended->has_value()) return ShowEnd(**ended, terminal);
    const absl::Duration silence = Clock::Real().Now() - answered;
    if (silence >= absl::Seconds(patience_)) {
      return ShowSilence(status.status(), terminal, err);
    }
    ShowGap(last, silence, terminal, err);
  }
}

StopCommand::StopCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "stop",
          "Stops a running job after the current step, with a checkpoint. The "
          "exit codes of its tasks ask for no restart.")),
      chief_(app_) {
  app_.add_option("--reason", reason_, "Reason for the stop, for the logs.");
}

int StopCommand::Run(Terminal& terminal, std::ostream& err) const {
  // Messages take no other text.
  if (!IsUtf8(reason_)) {
    return RefuseCommand(app_,
                         absl::InvalidArgumentError(
                             absl::StrCat("--reason is ", Excerpt(reason_),
                                          ", which is not UTF-8; write "
                                          "it in UTF-8")),
                         kUsageExitCode, err);
  }
  const absl::StatusOr<std::string> address = chief_.Address();
  if (!address.ok()) {
    return RefuseCommand(app_, address.status(),
                         FlagsExitCode(address.status()), err);
  }
  const absl::Status stopped =
      CoordinatorClient(*address).Stop(reason_, kTimeout, /*hold=*/true);
  if (!stopped.ok()) {
    return RefuseCommand(app_, chief_.ExplainSilence(stopped), kNoAnswer, err);
  }
  terminal.Print(absl::StrCat("the chief at ", *address,
                              " stops the job after this step\n"));
  return 0;
}

}  // namespace lockstep::cli
