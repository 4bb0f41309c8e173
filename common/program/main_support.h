#ifndef LOCKSTEP_COMMON_PROGRAM_MAIN_SUPPORT_H_
#define LOCKSTEP_COMMON_PROGRAM_MAIN_SUPPORT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/cluster/cluster.h"
#include "common/cluster/task_id.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"
#include "common/metrics/metric_families.h"
#include "common/observe/status_server.h"
#include "common/process/numa_node.h"
#include "common/process/process.h"
#include "common/program/retry_start.h"

namespace lockstep {

class FlagParser;

// Common code of the mains of ps_server, worker and chief.

struct CommonFlags {
  std::string tf_config;  // file; empty: the environment variable TF_CONFIG
  std::string log_level = "info";
  std::string status_address;  // host:port; empty: no status is served
  std::string tls_dir;       // with {role} and {index}; empty: no certificates
  std::string identity_map;  // a file; empty: none
  bool insecure = false;     // may listen beyond loopback without certificates
  bool exit_with_parent = false;
  bool stopped_is_done = false;  // kExitDone instead of kExitHeld
};
void AddCommonFlags(FlagParser& parser, CommonFlags& flags);

// Returns an option of a user's program: `given`, or, if that is empty, the
// value of the environment variable `variable`, which `lockstep run` may set,
// or an empty text if the variable is not set.
std::string OptionOfProgram(const std::string& given, const char* variable);
// Returns the log level of a user's program: `given`, or, if that is empty, the
// value of LOCKSTEP_LOG_LEVEL, or "warning" if that is not set.
std::string LogLevelOfProgram(const std::string& given);

// The job file and overrides of its fields.
struct JobFlags {
  std::string file;
  std::vector<std::string> overrides;  // "key=value"
  Beginning beginning;
};
void AddJobFlags(FlagParser& parser, JobFlags& flags);

// As AddJobFlags(), for a program of a user whose process hosts the chief:
// returns `given` if it names a file, or else the environment that `lockstep
// run` and `lockstep task` set: LOCKSTEP_JOB, a file; LOCKSTEP_SET, a line for
// each override; and LOCKSTEP_BEGIN, "fresh" or a step, as --fresh and --from.
//
//   kInvalidArgument  LOCKSTEP_BEGIN is neither
absl::StatusOr<JobFlags> JobOfProgram(JobFlags given);

// Flags of the processes that register with the chief.
struct TransferFlags {
  bool shared_memory = true;  // if worker and server share a host
  int pollers = 0;            // as in PollerLimit and CallPoller
  int numa_node = kAnyNumaNode;
  // As in ChiefClient::Options.
  absl::Duration chief_wait = absl::Minutes(10);
};
void AddTransferFlags(FlagParser& parser, TransferFlags& flags);

// Reads the job file and applies the overrides.
//
//   kNotFound         no file was named, or it cannot be read
//   kInvalidArgument  names line or field, the value and the allowed range
absl::StatusOr<JobConfig> LoadJob(const JobFlags& flags);

// Reads TF_CONFIG, checks that this process may run the task, starts the log in
// its name, and reads the certificates of --tls_dir.
//
//   kInvalidArgument    names the JSON path or flag, the value and the fix; an
//                       address beyond loopback without certificates
//   and others          as TransportSecurity::Load()
//   kResourceExhausted  too few threads can be made; names the limits
absl::StatusOr<Cluster> StartProcess(const CommonFlags& flags,
                                     const std::vector<TaskType>& allowed,
                                     const std::string& program);

// Checks that a server may listen on `address`: on loopback, or elsewhere with
// certificates or --insecure.
//
//   kInvalidArgument  it may not; says the fix
absl::Status CheckExposure(const CommonFlags& flags,
                           const std::string& address);

// Serves a StatusServer at --status_address; returns null without that flag. It
// has the metrics of `source` and of the process, with the labels job, task and
// index of the log's subject; the health of the process's gRPC server, if
// `cluster` gives it an address; and the pages that `pages` returns. With
// certificates, private pages are guarded.
//
// Errors: those of StatusServer::Start().
absl::StatusOr<std::unique_ptr<StatusServer>> ServeStatus(
    const CommonFlags& flags, const Cluster& cluster,
    std::function<MetricFamilies()> source,
    const std::function<std::vector<StatusPage>()>& pages = nullptr);

void LogRetry(const std::string& why);

// Starts a listening object by RetryStart(), and logs that it waits.
template <typename Start>
auto StartListening(const Start& start) {
  return RetryStart(start, [](const absl::Status& status) {
    LogRetry(std::string(status.message()));
  });
}

// Prints why the process cannot start, and returns its exit code. The code
// requests a restart only if the status is kAborted (another process runs this
// task now) or kUnavailable (another process has the port).
int Refuse(const absl::Status& status);

// Returns the exit code of a process whose part in the job ended with `status`.
int ExitCodeOf(const absl::Status& status);

// Logs how the process's part in the job ended, and returns its exit code. The
// process then ends within half a minute: see EndWithin().
int EndProcess(const CommonFlags& flags, const absl::Status& status);

// Logs how the process's part in the job ended, and ends the process at once,
// without destructors: those of the chief and of a mirror would stop a job that
// can go on.
[[noreturn]] void EndProcessNow(const absl::Status& status);

// SignalGate turns SIGTERM, SIGINT and SIGHUP into calls of a handler that may
// be set late: an earlier signal is not lost. The second signal ends the
// process at once, unless it comes within `same` of the first: timeout(1) and
// schedulers may send one twice. Must be constructed before any other thread.
//
// Threads: the handler runs in a thread of its own.
class SignalGate {
 public:
  explicit SignalGate(absl::Duration same = absl::Milliseconds(500));

  // `reason` is the signal's name, as "SIGTERM". With an empty handler, signals
  // wait for the next one; when this returns, the previous handler is not
  // running.
  void SetHandler(std::function<void(const std::string& reason)> handler)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void OnSignal(int signal) ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration same_;
  Mutex mutex_;
  std::function<void(const std::string&)> handler_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::string> pending_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> first_ ABSL_GUARDED_BY(mutex_);
  SignalWatcher watcher_;  // last: its thread uses the members above
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROGRAM_MAIN_SUPPORT_H_
