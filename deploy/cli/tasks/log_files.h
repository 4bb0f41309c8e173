#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOG_FILES_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOG_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Files of a run's log directory, for `lockstep status --log_dir`.
inline constexpr char kChiefAddressFile[] = "chief.address";
inline constexpr char kClusterFile[] = "cluster.json";
inline constexpr char kResultFile[] = "result.json";  // once it is over

// Bytes of a file; 0 when it is not there.
int64_t FileSize(const std::string& path);

// Moves what a log has so far to `path`.1, in place of what is there, and
// empties the log, which a process may go on to append to. A line that it
// writes at that very moment may be lost.
//
//   kInvalidArgument  it cannot be copied; the log is as it was
absl::Status RotateLog(const std::string& path);

// The last `lines` lines that were written from byte `start` on, printable and
// at most `columns` long. Empty if there are none.
std::vector<std::string> ReadLastLines(const std::string& path, int64_t start,
                                       size_t lines, size_t columns);

// Reads a small text file.
//
//   kInvalidArgument  it cannot be read, or is larger than 16 MiB
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// Writes a file that appears complete or not at all.
//
//   kInvalidArgument  it cannot be written
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOG_FILES_H_
