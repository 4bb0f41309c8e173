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

// Debian's absl::string_view is a type of its own, which fmt does not know.
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
// level and `task`, e.g. "worker 1". Where systemd's journal reads standard
// error, the lines go to it directly, as JournalSink has it, with what the
// functions below have said. Everything then logs through spdlog, by an
// OneLineSink.
//
//   kInvalidArgument  `level` is none of trace, debug, info, warning, error
absl::Status InitLog(const std::string& task, const std::string& level);

// The job that this process has a task of, by its name.
void SetLogJob(const std::string& name);

// The last step that this process knows to be committed; of an evaluator, the
// one that it scores.
void SetLogStep(int64_t step);

// What the lines of this process's log are about from here on.
//
// Threads: all of these may be called from any thread.
LogSubject CurrentLogSubject();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_LOG_H_
