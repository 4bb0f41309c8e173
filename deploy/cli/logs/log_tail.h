#ifndef LOCKSTEP_DEPLOY_CLI_LOGS_LOG_TAIL_H_
#define LOCKSTEP_DEPLOY_CLI_LOGS_LOG_TAIL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deploy/cli/logs/log_line.h"

namespace lockstep::cli {

// FollowedLog reads the log of one task as it grows. `lockstep run` moves a log
// that has become too large to `path`.1 and empties it: the tail goes on with
// what it has not read of the moved lines, and then from the beginning.
//
// Threads: not thread-safe.
class FollowedLog {
 public:
  FollowedLog(std::string path, const std::string& task, absl::TimeZone zone);

  // Returns the lines that were completed since the last call; the first call
  // begins with those of `path`.1.
  std::vector<LogLine> Poll();

  // Returns the last line, if it has no end.
  std::vector<LogLine> Rest();

 private:
  // Reads `path` from `offset` on, which it moves; stops at `most` bytes.
  void ReadFrom(const std::string& path, int64_t& offset,
                std::vector<LogLine>& lines);

  const std::string path_;
  LogReader reader_;
  int64_t offset_ = 0;  // in `path`
  // The file at `path`.1; another one is there once the log was moved.
  uint64_t moved_file_ = 0;
};

// RunLogs are the logs of all tasks in a run's directory, also of tasks that
// begin later.
//
// Threads: not thread-safe.
class RunLogs {
 public:
  RunLogs(std::string directory, absl::TimeZone zone);

  // As FollowedLog::Poll(), of all logs; each in its order.
  std::vector<LogLine> Poll();
  std::vector<LogLine> Rest();

  bool empty() const { return tails_.empty(); }

 private:
  const std::string directory_;
  const absl::TimeZone zone_;
  std::map<std::string, std::unique_ptr<FollowedLog>> tails_;  // by path
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOGS_LOG_TAIL_H_
