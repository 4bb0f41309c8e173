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

// FileReading is how far a process is with the file of data that it reads, for
// people, since files may have gigabytes.
//
// Threads: safe to share: one reads files, others ask.
// Borrows: the clock.
class FileReading {
 public:
  // Calls `on_change` in the thread that reads, after each change of Text().
  explicit FileReading(const Clock& clock,
                       std::function<void()> on_change = nullptr)
      : clock_(clock), on_change_(std::move(on_change)) {}

  // While it exists, the functions of this room that the same thread calls tell
  // `reading` of their files. Scopes of a thread nest.
  class Scope {
   public:
    explicit Scope(FileReading& reading);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    FileReading* const before_;
  };

  // The work on a file begins: `verb` is "reads" or "unpacks", `bytes` its
  // size. For the functions of this room; does nothing in a thread without a
  // Scope.
  static void Begin(const std::string& verb, const std::string& path,
                    int64_t bytes);
  // So many bytes more are done.
  static void Advance(int64_t bytes);

  // "reads train.npy, 40 %, 12 s to go"; empty before the first file and once
  // the scope has ended.
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
