#ifndef LOCKSTEP_COMMON_BASE_JOURNAL_SINK_H_
#define LOCKSTEP_COMMON_BASE_JOURNAL_SINK_H_

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spdlog/sinks/base_sink.h"

namespace lockstep {

// The context of a log line.
struct LogSubject {
  std::string task{};  // "worker 1"
  std::string job{};   // empty before it is known
  int64_t step = -1;   // last committed step known to this process; -1: none
};

// True if the file is the one that systemd's journal reads, by the environment
// variable JOURNAL_STREAM, "<device>:<inode>".
bool IsJournalStream(absl::string_view journal_stream, const struct stat& file);

// Returns the fields of an entry, each as NAME=value: MESSAGE, PRIORITY,
// LOCKSTEP_TASK, and LOCKSTEP_JOB and LOCKSTEP_STEP if they are known.
std::vector<std::string> JournalFields(const LogSubject& subject,
                                       spdlog::level::level_enum level,
                                       absl::string_view text);

// Sends an entry to the journal; false if the journal did not accept it.
bool SendToJournal(const std::vector<std::string>& fields);

// JournalSink sends each log line to systemd's journal, with its context in
// fields that `journalctl` can search. A line that the journal does not accept
// goes to standard error.
//
// Threads: safe to share.
class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  using Subject = std::function<LogSubject()>;
  using Send = std::function<bool(const std::vector<std::string>& fields)>;

  explicit JournalSink(Subject subject, Send send = SendToJournal);

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  const Subject subject_;
  const Send send_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_JOURNAL_SINK_H_
