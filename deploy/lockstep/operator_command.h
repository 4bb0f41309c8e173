#ifndef LOCKSTEP_DEPLOY_LOCKSTEP_OPERATOR_COMMAND_H_
#define LOCKSTEP_DEPLOY_LOCKSTEP_OPERATOR_COMMAND_H_

#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/lockstep/job_status.h"
#include "deploy/lockstep/terminal.h"

namespace lockstep {

// ChiefFlags say which chief a command is for: its address, or a file that
// names it.
class ChiefFlags {
 public:
  ChiefFlags() = default;
  explicit ChiefFlags(CLI::App& app) { AddTo(app); }
  // This must stay where it is until the flags have been parsed.
  void AddTo(CLI::App& app);

  //   kInvalidArgument  none or more than one flag; an address or a file that
  //                     makes no sense
  absl::StatusOr<std::string> Address() const;

 private:
  std::string chief_;
  std::string cluster_file_;
  std::string log_dir_;
};

// StatusCommand is `lockstep status`.
class StatusCommand {
 public:
  explicit StatusCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns what ExitCodeOf() says, 1 when no chief answers within five
  // seconds, 2 for bad flags. With --watch it shows the status again and again,
  // until the job has ended or its chief is gone.
  int Run(Terminal& terminal, std::ostream& err) const;

  // 0 for a job that runs or is done, 4 for one that is paused, 5 for a failed
  // and 6 for a stopped one.
  static int ExitCodeOf(const JobStatus& status);

 private:
  void Show(const JobStatus& status, Terminal& terminal) const;

  CLI::App& app_;
  ChiefFlags chief_;
  bool json_ = false;
  bool watch_ = false;
  double interval_ = 1;  // seconds
};

// What an operator's command returns when no chief answers, or it refuses.
inline constexpr int kNoAnswer = 1;

// Says why a command fails, and returns `code`.
int RefuseCommand(const CLI::App& app, const absl::Status& status, int code,
                  std::ostream& err);

// StopCommand is `lockstep stop`.
class StopCommand {
 public:
  explicit StopCommand(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0 as soon as the chief has agreed, 1 when it refuses or does not
  // answer within five seconds, 2 for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  CLI::App& app_;
  ChiefFlags chief_;
  std::string reason_ = "lockstep stop";
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_LOCKSTEP_OPERATOR_COMMAND_H_
