#include "worker/data/files/file_reading.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/progress_text.h"

namespace lockstep::worker {
namespace {

// A thread's variable in place of an argument: the readers of a dozen formats
// are between the caller and the loop that reads, and would only pass it on.
thread_local FileReading* current = nullptr;

}  // namespace

FileReading::Scope::Scope(FileReading& reading)
    : before_(std::exchange(current, &reading)) {}

FileReading::Scope::~Scope() {
  FileReading& ended = *std::exchange(current, before_);
  MutexLock lock(ended.mutex_);
  ended.what_.clear();
}

void FileReading::Begin(const std::string& verb, const std::string& path,
                        int64_t bytes) {
  if (current == nullptr) return;
  const absl::Time now = current->clock_.Now();
  {
    MutexLock lock(current->mutex_);
    current->what_ = absl::StrCat(
        verb, " ", std::filesystem::path(path).filename().string());
    current->done_ = 0;
    current->total_ = bytes;
    current->began_ = now;
  }
  if (current->on_change_ != nullptr) current->on_change_();
}

void FileReading::Advance(int64_t bytes) {
  if (current == nullptr) return;
  {
    MutexLock lock(current->mutex_);
    current->done_ += bytes;
  }
  if (current->on_change_ != nullptr) current->on_change_();
}

std::string FileReading::Text() const {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  if (what_.empty()) return "";
  return absl::StrCat(
      what_, ProgressText(done_, total_, absl::ToDoubleSeconds(now - began_)));
}

}  // namespace lockstep::worker
