#include "common/base/log.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/one_line_sink.h"
#include "common/text/log_form.h"
#include "spdlog/sinks/dist_sink.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace lockstep {
namespace {

// One object per process, because the log is per process.
struct Context {
  Mutex mutex;
  std::string task ABSL_GUARDED_BY(mutex);
  std::string job ABSL_GUARDED_BY(mutex);
  std::atomic<int64_t> step = -1;
};

// Never destroyed: threads that end last may still log.
Context& OwnContext() {
  static Context& context = *new Context;
  return context;
}

// The process's logger. It stays once it is the default, and the library's own
// stays too, because spdlog hands threads a pointer that owns nothing: a logger
// that is replaced is destroyed while another thread logs. What changes is
// where the lines go.
struct ProcessLogger {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  // Its sinks change under its mutex.
  const std::shared_ptr<spdlog::sinks::dist_sink_mt> target =
      std::make_shared<spdlog::sinks::dist_sink_mt>();
  // OneLineSink, because messages quote text of peers.
  const std::shared_ptr<spdlog::logger> logger =
      std::make_shared<spdlog::logger>("lockstep",
                                       std::make_shared<OneLineSink>(target));
};

ProcessLogger& OwnLogger() {
  static ProcessLogger& logger = *new ProcessLogger;
  return logger;
}

bool JournalReadsStderr() {
  const char* stream = getenv("JOURNAL_STREAM");
  struct stat file;
  return stream != nullptr && fstat(STDERR_FILENO, &file) == 0 &&
         IsJournalStream(stream, file);
}

}  // namespace

absl::Status InitLog(const std::string& task, const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  // from_str() returns `off` for an unknown name.
  if (parsed == spdlog::level::off || level.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--log_level is \"", level,
                     "\"; use one of trace, debug, info, warning, error"));
  }
  {
    MutexLock lock(OwnContext().mutex);
    OwnContext().task = task;
  }
  const bool journal = JournalReadsStderr();
  spdlog::sink_ptr sink;
  if (journal) {
    sink = std::make_shared<JournalSink>(CurrentLogSubject);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  // The journal stores the time and the level in fields of its own.
  sink->set_pattern(absl::StrCat(journal ? "" : kLogHeadPattern, task, ": %v"));
  ProcessLogger& own = OwnLogger();
  own.target->set_sinks({std::move(sink)});
  own.logger->set_level(parsed);
  own.logger->flush_on(spdlog::level::info);
  if (spdlog::default_logger() != own.logger) {
    spdlog::set_default_logger(own.logger);
  }
  return absl::OkStatus();
}

void SetLogJob(const std::string& name) {
  MutexLock lock(OwnContext().mutex);
  OwnContext().job = name;
}

void SetLogStep(int64_t step) { OwnContext().step = step; }

LogSubject CurrentLogSubject() {
  Context& context = OwnContext();
  MutexLock lock(context.mutex);
  return {context.task, context.job, context.step};
}

}  // namespace lockstep
