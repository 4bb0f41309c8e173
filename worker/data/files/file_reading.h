#ifndef LOCKSTEP_WORKER_DATA_FILES_FILE_READING_H_
#define LOCKSTEP_WORKER_DATA_FILES_FILE_READING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace lockstep::worker {

// FileReading describes the progress of a process through the file of data that
// it reads, for people: files may have gigabytes.
//
// Threads: safe to share: one thread reads files, others call Text().
// Borrows: the clock.
class FileReading {
 public:
  // Calls `on_change` in the thread that reads, after each change of Text().
  explicit FileReading(const Clock& clock,
                       std::function<void()> on_change = nullptr)
      : clock_(clock), on_change_(std::move(on_change)) {}

  // While a Scope exists, the functions of this room that its thread calls
  // report their files to `reading`. Scopes of a thread nest.
  class Scope {
   public:
    explicit Scope(FileReading& reading);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    FileReading* const before_;
  };

  // Begins the work on a file: `verb` is "reads" or "unpacks", `bytes` its
  // size. For the functions of this room; has no effect in a thread without a
  // Scope.
  static void Begin(const std::string& verb, const std::string& path,
                    int64_t bytes);
  // Adds to the bytes done.
  static void Advance(int64_t bytes);

  // Returns a text such as "reads train.npy, 40 %, 12 s to go"; empty before
  // the first file and once the scope has ended.
  std::string Text() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Clock& clock_;
  const std::function<void()> on_change_;  // may be null
  mutable Mutex mutex_;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time began_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_FILE_READING_H_
