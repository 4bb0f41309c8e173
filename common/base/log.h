#ifndef LOCKSTEP_COMMON_BASE_LOG_H_
#define LOCKSTEP_COMMON_BASE_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/journal_sink.h"
#include "spdlog/fmt/fmt.h"
#include "spdlog/spdlog.h"

// Debian's absl::string_view is a separate type, which fmt does not know.
template <>
struct fmt::formatter<absl::string_view> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(absl::string_view text, Context& context) const {
    return fmt::formatter<std::string_view>::format(
        std::string_view(text.data(), text.size()), context);
  }
};

namespace lockstep {

// Prepares the process's log: lines on standard error that start with time,
// level and `task`, e.g. "worker 1". If systemd's journal reads standard error,
// JournalSink sends the lines to it directly, with the job and step set by the
// functions below. Afterwards all code logs through spdlog, by a OneLineSink.
// The first call must come before other threads log; `task` must have no "%".
//
//   kInvalidArgument  `level` is none of trace, debug, info, warning, error
absl::Status InitLog(const std::string& task, const std::string& level);

// Sets the name of this process's job.
void SetLogJob(const std::string& name);

// Sets the last committed step known to this process; an evaluator sets the
// step that it scores.
void SetLogStep(int64_t step);

// Returns the context of the log lines that follow.
//
// Threads: all functions of this file may be called from any thread.
LogSubject CurrentLogSubject();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_LOG_H_
