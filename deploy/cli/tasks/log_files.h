#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOG_FILES_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOG_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::cli {

// Files in a run's log directory, for `lockstep status --log_dir`.
inline constexpr char kChiefAddressFile[] = "chief.address";
// A link to the certificate with which an operator steers the run.
inline constexpr char kOperatorTlsDir[] = "operator_tls";
inline constexpr char kClusterFile[] = "cluster.json";
// The chief's copy of the job file. Persons call theirs job.textproto.
inline constexpr char kJobFile[] = "chief.textproto";
inline constexpr char kResultFile[] = "result.json";  // once it is over

// Returns the size of a file in bytes; 0 if it does not exist.
int64_t FileSize(const std::string& path);

// Moves the contents of a log to `path`.1, which is replaced, and empties the
// log; a process may continue to append to it. A line that it writes at that
// very moment may be lost.
//
//   kInvalidArgument  it cannot be copied; the log is unchanged
absl::Status RotateLog(const std::string& path);

// Appends a line as of a program's log, that a new run begins, to a log with
// lines of an earlier one. A log that cannot be written stays as it is.
void MarkNewRun(const std::string& path, absl::Time now);

// Returns the last `lines` lines of those written from byte `start` on,
// printable and at most `columns` long. Empty if there are none. Only the last
// 64 KiB of the file are read.
std::vector<std::string> ReadLastLines(const std::string& path, int64_t start,
                                       size_t lines, size_t columns);

// Reads a small text file.
//
//   kInvalidArgument  it cannot be read, or is larger than 16 MiB
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// As ReadTextFile(), of a file that the flag names; its error names both.
absl::StatusOr<std::string> ReadFlagFile(absl::string_view flag,
                                         const std::string& path);

// Writes a file that appears complete or not at all.
//
//   kInvalidArgument  it cannot be written
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOG_FILES_H_
