#include "deploy/cli/config/explain_command.h"

#include "absl/strings/str_cat.h"
#include "common/flags/flag_parser.h"
#include "deploy/cli/config/job_field.h"
#include "deploy/cli/config/job_reference.h"

namespace lockstep::cli {

ExplainCommand::ExplainCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "explain",
          "Explains a field of the job file: its meaning, its default, and how "
          "to set it. With --log_dir, --chief or --cluster it explains a "
          "running job instead: why its steps take as long as they do, and "
          "what would help most.")) {
  app_.add_option(
      "field", field_,
      "Such as model.hidden_units; without it and without a job, all "
      "fields of the file are listed.");
  app_.add_flag("--manual_page", manual_page_,
                "Print the manual page lockstep-job(5) instead, for man.");
}

int ExplainCommand::Run(Terminal& terminal, std::ostream& err) const {
  const JobField root = JobReference();
  if (manual_page_) {
    terminal.Print(JobManualPage(root, LOCKSTEP_VERSION));
    return 0;
  }
  const absl::StatusOr<std::string> text =
      ExplainField(root, field_, terminal.Columns());
  if (!text.ok()) {
    err << "lockstep explain: " << text.status().message() << "\n";
    return kUsageExitCode;
  }
  terminal.Print(*text);
  return 0;
}

}  // namespace lockstep::cli
