#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOG_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOG_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace lockstep {

// LogDirectory is where one run keeps its logs. A lock on a file in it lasts as
// long as this process, however it ends, so that no other run takes it.
class LogDirectory {
 public:
  // Of directories that were made, so many stay for each job.
  static constexpr int kKept = 10;

  // Takes `log_dir`, made if it is missing. For an empty one makes
  // lockstep-<job>-<n> in `parent`, with an n above all that are there, and
  // removes the oldest of this user's whose runs are over, beyond kKept.
  //
  //   kInvalidArgument     it cannot be made
  //   kFailedPrecondition  a run that goes on has it
  static absl::StatusOr<std::unique_ptr<LogDirectory>> Open(
      const std::string& log_dir, const std::string& parent,
      const std::string& job);

  // Whether a run was here, and has ended, however it did.
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

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOG_DIRECTORY_H_
