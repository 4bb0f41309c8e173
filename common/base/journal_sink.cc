#include "common/base/journal_sink.h"

#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

int Priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return LOG_DEBUG;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::critical:
      return LOG_CRIT;
    default:
      return LOG_INFO;
  }
}

}  // namespace

bool IsJournalStream(absl::string_view journal_stream,
                     const struct stat& file) {
  // systemd's rule: a child may inherit the variable while its standard error
  // leads elsewhere.
  return journal_stream == absl::StrCat(file.st_dev, ":", file.st_ino);
}

std::vector<std::string> JournalFields(const LogSubject& subject,
                                       spdlog::level::level_enum level,
                                       absl::string_view text) {
  std::vector<std::string> fields = {
      absl::StrCat("MESSAGE=", text),
      absl::StrCat("PRIORITY=", Priority(level)),
      absl::StrCat("LOCKSTEP_TASK=", subject.task)};
  if (!subject.job.empty()) {
    fields.push_back(absl::StrCat("LOCKSTEP_JOB=", subject.job));
  }
  if (subject.step >= 0) {
    fields.push_back(absl::StrCat("LOCKSTEP_STEP=", subject.step));
  }
  return fields;
}

bool SendToJournal(const std::vector<std::string>& fields) {
  std::vector<iovec> parts;
  parts.reserve(fields.size());
  for (const std::string& field : fields) {
    // iovec is also for reading, hence the cast; the journal only reads.
    parts.push_back({const_cast<char*>(field.data()), field.size()});
  }
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

JournalSink::JournalSink(Subject subject, Send send)
    : subject_(std::move(subject)), send_(std::move(send)) {}

void JournalSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  absl::string_view text(line.data(), line.size());
  // The journal's entries have no line breaks.
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (!send_(JournalFields(subject_(), message.level, text))) {
    std::cerr << text << std::endl;
  }
}

}  // namespace lockstep
