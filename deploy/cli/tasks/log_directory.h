#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOG_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOG_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace lockstep::cli {

// LogDirectory holds the logs of one run. A lock on a file in it lasts as long
// as this process, however it ends, so that no other run can use it.
//
// Threads: not thread-safe. A lock counts within one process, too: a second
// Open() of a directory is refused.
class LogDirectory {
 public:
  // Number of created directories that are kept for each job.
  static constexpr int kKept = 10;

  // Uses `log_dir`, which it creates if it is missing. If `log_dir` is empty,
  // creates lockstep-<job>-<n> in `parent`, with an n above all those of this
  // user's directories, and removes the oldest ones of this user's finished
  // runs, beyond kKept.
  //
  //   kInvalidArgument     it cannot be created, or no run has used it and it
  //                        has a file that a run would overwrite
  //   kFailedPrecondition  another live run uses it
  static absl::StatusOr<std::unique_ptr<LogDirectory>> Open(
      const std::string& log_dir, const std::string& parent,
      const std::string& job);

  // True if a run used this directory and has ended in any way.
  static bool IsLeft(const std::string& path);

  ~LogDirectory();
  LogDirectory(const LogDirectory&) = delete;
  LogDirectory& operator=(const LogDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  LogDirectory(std::string path, int lock_fd)
      : path_(std::move(path)), lock_fd_(lock_fd) {}

  static absl::StatusOr<std::unique_ptr<LogDirectory>> Lock(
      const std::string& path);

  const std::string path_;
  const int lock_fd_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOG_DIRECTORY_H_
