#include "deploy/cli/trace/trace_command.h"

#include <string.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/flags/wrap_text.h"
#include "deploy/cli/spans/chrome_trace.h"
#include "deploy/cli/spans/explanation.h"
#include "deploy/cli/spans/explanation_text.h"
#include "deploy/cli/spans/job_trace.h"
#include "deploy/cli/trace/trace_client.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kMostSteps = 10000;

void AddFlags(CLI::App& app, int64_t& steps, double& timeout) {
  app.add_option("--steps", steps, "Number of steps, the newest ones.")
      ->check(CLI::Range(int64_t{1}, kMostSteps))
      ->capture_default_str();
  app.add_option("--timeout", timeout,
                 "Seconds to wait for the chief and for spans of all tasks.")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file.fail()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "--out is ", path, ", which cannot be written: ", strerror(errno),
      "; name another file"));
}

// Returns a line about the tasks whose spans are not there.
std::string SilentText(const JobTrace& trace) {
  std::string text;
  for (const std::string& task : trace.silent) {
    absl::StrAppend(&text, text.empty() ? "no spans came from " : ", ", task);
  }
  return text.empty() ? "" : text + "\n";
}

}  // namespace

TraceCommand::TraceCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "trace",
          "Writes what each task of a running job did in its newest steps, "
          "as a file for https://ui.perfetto.dev or chrome://tracing.")),
      chief_(app_) {
  AddFlags(app_, steps_, timeout_);
  app_.add_option("--out", out_, "File to write.")->capture_default_str();
}

int TraceCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::StatusOr<std::string> address = chief_.Address();
  if (!address.ok()) {
    return RefuseCommand(app_, address.status(),
                         FlagsExitCode(address.status()), err);
  }
  absl::StatusOr<JobTrace> trace =
      CollectTrace(*address, absl::Seconds(timeout_));
  if (!trace.ok()) {
    return RefuseCommand(app_, chief_.ExplainSilence(trace.status()), kNoAnswer,
                         err);
  }
  AlignClocks(*trace);
  DropLostSteps(*trace);
  const StepRange range = NewestSteps(*trace, steps_);
  if (range.empty()) {
    return RefuseCommand(
        app_,
        absl::FailedPreconditionError(absl::StrCat(
            "the job has committed no step yet, or ps 0 handed no spans in; ",
            SilentText(*trace), "try again later")),
        kNoAnswer, err);
  }
  // Tasks keep more steps than were asked for.
  KeepSteps(range, *trace);
  const absl::Status written = WriteText(out_, ChromeTraceJson(*trace));
  if (!written.ok()) return RefuseCommand(app_, written, kNoAnswer, err);
  terminal.Print(absl::StrCat(SilentText(*trace), out_, ": steps ",
                              range.first + 1, " to ", range.end, " of ",
                              trace->tasks.size(),
                              " tasks; open it in https://ui.perfetto.dev\n"));
  return 0;
}

ExplainJobCommand::ExplainJobCommand(CLI::App& explain)
    : app_(explain), chief_(app_) {
  AddFlags(app_, steps_, timeout_);
  app_.add_flag("--json", json_, "Print the job's explanation as JSON.");
}

bool ExplainJobCommand::chosen() const {
  // --timeout alone says nothing of a job; --json and --steps do, so that the
  // missing flag is reported.
  return app_.parsed() && (chief_.given() || app_.count("--json") > 0 ||
                           app_.count("--steps") > 0);
}

int ExplainJobCommand::Run(Terminal& terminal, std::ostream& err) const {
  if (app_.count("field") > 0) {
    return RefuseCommand(
        app_,
        absl::InvalidArgumentError(
            "a field and a running job are given; leave the field out to have "
            "the job explained, or the other flags to have the field"),
        kUsageExitCode, err);
  }
  const absl::StatusOr<std::string> address = chief_.Address();
  if (!address.ok()) {
    return RefuseCommand(app_, address.status(),
                         FlagsExitCode(address.status()), err);
  }
  const auto explain = [&]() -> absl::StatusOr<Explanation> {
    LOCKSTEP_ASSIGN_OR_RETURN(JobTrace trace,
                              CollectTrace(*address, absl::Seconds(timeout_)));
    return Explain(std::move(trace), steps_);
  };
  const absl::StatusOr<Explanation> explanation = explain();
  if (!explanation.ok()) {
    return RefuseCommand(app_, chief_.ExplainSilence(explanation.status()),
                         kNoAnswer, err);
  }
  terminal.Print(
      json_ ? ExplanationJson(*explanation) + "\n"
            : WrapText(ExplanationText(*explanation), terminal.Columns(), 2));
  return 0;
}

}  // namespace lockstep::cli
