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
  // OneLineSink, because messages quote text of peers.
  auto logger = std::make_shared<spdlog::logger>(
      task, std::make_shared<OneLineSink>(std::move(sink)));
  // The journal stores the time and the level in fields of its own.
  logger->set_pattern(journal ? "%n: %v"
                              : "%Y-%m-%dT%H:%M:%S.%e %^%-7l%$ %n: %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
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
