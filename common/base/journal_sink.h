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

// What a line of the log is about.
struct LogSubject {
  std::string task{};  // "worker 1"
  std::string job{};   // empty before it is known
  int64_t step = -1;   // last committed one that this process knows; -1: none
};

// Whether a file is the one that systemd's journal reads, as the environment
// variable JOURNAL_STREAM says: "<device>:<inode>".
bool IsJournalStream(absl::string_view journal_stream, const struct stat& file);

// The fields of an entry, each as NAME=value: MESSAGE, PRIORITY, LOCKSTEP_TASK,
// and LOCKSTEP_JOB and LOCKSTEP_STEP where they are known.
std::vector<std::string> JournalFields(const LogSubject& subject,
                                       spdlog::level::level_enum level,
                                       absl::string_view text);

// Hands an entry to the journal; false if that did not take it.
bool SendToJournal(const std::vector<std::string>& fields);

// JournalSink sends each line of the log to systemd's journal, with its subject
// in fields that `journalctl` can search. A line that the journal does not take
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
