#ifndef LOCKSTEP_DEPLOY_CLI_RUN_RUN_SETUP_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_RUN_SETUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/beginning.h"
#include "deploy/cli/command/counted_cluster.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/run/port_reservation.h"
#include "deploy/cli/run/state_directory.h"
#include "deploy/cli/tasks/launch_plan.h"
#include "deploy/cli/tasks/local_cluster.h"
#include "deploy/cli/tasks/log_directory.h"

namespace lockstep::cli {

// The arguments of `lockstep run`.
struct RunRequest {
  std::string cluster_file{};  // empty: `counts` say which tasks there are
  TaskCounts counts{};
  std::string job_file{};               // empty: `settings` are the whole job
  std::vector<std::string> settings{};  // "key=value" each
  std::string log_dir{};                // empty: a new one
  std::string state_dir{};              // empty: private, removed at the end
  std::string log_level = "info";
  std::string own_log_level{};  // as in LaunchOptions
  std::string program_dir{};
  int compute_threads = 0;  // 0: divide the cores among workers
  // Processes use no TLS. Otherwise the run makes certificates for them.
  bool insecure = false;
  // The job's page is there, "host:port"; port 0 is chosen. Empty: no page.
  std::string status_address = "127.0.0.1:0";
  int gpus = 0;  // to divide among workers; 0: all that they find
  Beginning beginning{};
  UserCommand command{};            // runs each worker; empty: the built-in one
  std::string evaluator_command{};  // for the shell; empty: the built-in one
};

// RunSetup holds everything that a run needs before its first process starts.
// It keeps ports and directories until the run is over.
struct RunSetup {
  LocalCluster cluster;
  std::string job_name;
  std::string checkpoints;  // an absolute path; empty: none are kept
  int needed_workers = 1;
  bool need_follows_settings = false;  // as in Supervisor::Options
  bool programs = false;               // likewise
  bool elastic_programs = false;       // likewise
  bool chief_in_program = false;       // likewise
  bool input_ends = false;             // likewise
  bool ps_are_mirrors = false;         // likewise
  std::vector<std::string> settings;   // of the request and its command
  std::unique_ptr<LogDirectory> logs;
  std::string log_dir;  // an absolute path
  std::vector<TaskLaunch> launches;
  std::vector<PortReservation> ports;
  std::unique_ptr<StateDirectory> state;
  std::string kept_state;  // its absolute path; empty: it goes with the run
  // Private, and removed at the end: for certificates, if `state` is kept.
  std::unique_ptr<StateDirectory> secrets;
  std::string operator_tls_dir;  // of this process; empty: none
  std::string status_address;    // with its port; empty: no page
};

// Reads and checks the files, and the job's needs on this machine, as far as
// that takes milliseconds; then creates the directories: the log directory gets
// chief.address, cluster.json and chief.textproto, a copy of the job file.
//
//   kInvalidArgument     status_address is none of this machine; a file cannot
//                        be read or is invalid; the job does not fit the
//                        cluster or this machine; an address is not on this
//                        machine, or its port is taken; a program is missing; a
//                        directory cannot be made; a command for an evaluator
//                        that the cluster does not have
//   and others           checkpoint.directory cannot be written to
//   kFailedPrecondition  another run uses the directory of logs, of state, or
//                        of checkpoints
//   kResourceExhausted   no port is free, or too few threads can be made
absl::StatusOr<RunSetup> SetUpRun(const RunRequest& request);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_RUN_SETUP_H_
