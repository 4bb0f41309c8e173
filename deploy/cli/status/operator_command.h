#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_OPERATOR_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_OPERATOR_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/status/job_status.h"
#include "common/status/status_json.h"
#include "deploy/cli/status/coordinator_client.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// ChiefFlags select the chief of a command: by its address, or by a file with
// the address.
//
// Threads: not thread-safe.
class ChiefFlags {
 public:
  ChiefFlags() = default;
  explicit ChiefFlags(CLI::App& app) { AddTo(app); }
  // This object must not move until the flags have been parsed.
  void AddTo(CLI::App& app);

  // True if one of the flags that name a chief is there.
  bool given() const {
    return !chief_.empty() || !cluster_file_.empty() || !log_dir_.empty();
  }

  // Reads the certificate of --tls_dir too, which all later connections use.
  //
  //   kInvalidArgument     none or more than one flag; an invalid address or
  //                        file
  //   others               as TransportSecurity::Load()
  //   kFailedPrecondition  the run of --log_dir is over; says how it ended
  absl::StatusOr<std::string> Address() const;

  // Returns the result of the run of --log_dir, as it was written. Returns
  // nothing while the run goes on, if the flag is not given, or if another flag
  // that names a chief is given, too.
  //
  //   kFailedPrecondition  the run was killed and left no result
  //   kInvalidArgument     the result is invalid
  struct Ended {
    RunResult result{};
    std::string json{};
  };
  absl::StatusOr<std::optional<Ended>> EndOfRun() const;

  // Adds to the error of a call that met its deadline, or that the end of the
  // chief has cut, what the directory of --log_dir tells about the run. Returns
  // other errors as they are.
  absl::Status ExplainSilence(const absl::Status& silence) const;

 private:
  // Reads the operator's certificate, if there is one.
  absl::Status Secure() const;
  absl::StatusOr<std::string> ChiefAddress() const;
  absl::Status CheckOne() const;  // that one of the flags names a chief

  std::string chief_;
  std::string cluster_file_;
  std::string log_dir_;
  std::string tls_dir_;
  std::string identity_map_;
};

// StatusCommand is `lockstep status`.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class StatusCommand {
 public:
  explicit StatusCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns ExitCodeOf() of the status, 1 if no chief answers within five
  // seconds, 2 for bad flags. With --watch it repeats the status until the job
  // has ended; a chief that has answered once may be silent for --patience.
  int Run(Terminal& terminal, std::ostream& err) const;

  // Returns 0 for a job that runs or is done, 4 for a paused, 5 for a failed
  // and 6 for a stopped one.
  static int ExitCodeOf(const JobStatus& status);

 private:
  int Watch(CoordinatorClient& chief, Terminal& terminal,
            std::ostream& err) const;
  void Show(const JobStatus& status, Terminal& terminal) const;
  void ShowGap(const std::optional<JobStatus>& last, absl::Duration silence,
               Terminal& terminal, std::ostream& err) const;
  int ShowEnd(const ChiefFlags::Ended& ended, Terminal& terminal) const;
  int ShowSilence(const absl::Status& silence, Terminal& terminal,
                  std::ostream& err) const;

  CLI::App& app_;
  ChiefFlags chief_;
  bool json_ = false;
  bool watch_ = false;
  double interval_ = 1;   // seconds
  double patience_ = 60;  // seconds
};

// Exit code of an operator's command if no chief answers, or it refuses.
inline constexpr int kNoAnswer = 1;

// Returns the exit code for an error of ChiefFlags.
int FlagsExitCode(const absl::Status& status);

// Prints why a command fails, and returns `code`.
int RefuseCommand(const CLI::App& app, const absl::Status& status, int code,
                  std::ostream& err);

// StopCommand is `lockstep stop`.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class StopCommand {
 public:
  explicit StopCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0 as soon as the chief has agreed, 1 if it refuses or does not
  // answer within five seconds, 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  ChiefFlags chief_;
  std::string reason_ = "lockstep stop";
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_OPERATOR_COMMAND_H_
