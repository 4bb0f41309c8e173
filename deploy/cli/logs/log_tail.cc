#include "deploy/cli/logs/log_tail.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

constexpr char kSuffix[] = ".log";

// Returns "worker 1" for "worker-1.log"; "" for another file.
std::string TaskOf(const std::string& file) {
  const size_t dash = file.rfind('-');
  const size_t suffix = file.rfind(kSuffix);
  int index = 0;
  if (dash == std::string::npos || suffix == std::string::npos ||
      dash > suffix || suffix + sizeof(kSuffix) - 1 != file.size() ||
      !absl::SimpleAtoi(file.substr(dash + 1, suffix - dash - 1), &index)) {
    return "";
  }
  return absl::StrCat(file.substr(0, dash), " ", index);
}

// Returns a number of the file; 0 if there is none.
uint64_t FileAt(const std::string& path) {
  struct stat file;
  return stat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

// Returns the beginning of the file; empty if there is none.
std::string HeadOf(const std::string& path) {
  std::array<char, 256> buffer;
  std::ifstream file(path, std::ios::binary);
  file.read(buffer.data(), buffer.size());
  return std::string(buffer.data(), static_cast<size_t>(file.gcount()));
}

void Append(std::vector<LogLine> more, std::vector<LogLine>& lines) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

}  // namespace

FollowedLog::FollowedLog(std::string path, const std::string& task,
                         absl::TimeZone zone)
    : path_(std::move(path)), reader_(task, absl::InfinitePast(), zone) {}

void FollowedLog::ReadFrom(const std::string& path, int64_t& offset,
                           std::vector<LogLine>& lines) {
  std::ifstream file(path, std::ios::binary);
  // Also where there is no file, such as `path`.1 of a short log.
  if (!file.seekg(offset)) return;
  std::array<char, 64 << 10> buffer;
  while (file) {
    file.read(buffer.data(), buffer.size());
    const auto count = static_cast<size_t>(file.gcount());
    offset += static_cast<int64_t>(count);
    Append(reader_.Read(absl::string_view(buffer.data(), count)), lines);
  }
}

std::vector<LogLine> FollowedLog::Poll() {
  std::vector<LogLine> lines;
  const std::string moved = path_ + ".1";
  // Asked before the log is read: if it is moved in between, the next call sees
  // another file and reads the rest of it.
  const uint64_t moved_file = FileAt(moved);
  bool moves = moved_file != 0 && moved_file != moved_file_;
  if (moves && absl::StartsWith(HeadOf(path_), HeadOf(moved))) {
    // It was copied, and not emptied yet. The next call sees it empty.
    moves = false;
  } else {
    moved_file_ = moved_file;
  }
  if (moves || FileSize(path_) < offset_) {
    // The moved file is a copy of the log, so that the lines that were not read
    // begin at the same offset in it. A log that was emptied without being
    // moved has lost its lines.
    if (moves) ReadFrom(moved, offset_, lines);
    offset_ = 0;
  }
  ReadFrom(path_, offset_, lines);
  return lines;
}

std::vector<LogLine> FollowedLog::Rest() {
  std::vector<LogLine> lines;
  if (std::optional<LogLine> last = reader_.End()) {
    lines.push_back(*std::move(last));
  }
  return lines;
}

RunLogs::RunLogs(std::string directory, absl::TimeZone zone)
    : directory_(std::move(directory)), zone_(zone) {}

std::vector<LogLine> RunLogs::Poll() {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory_, error);
  // increment(), because ++ throws when the directory cannot be read any
  // longer.
  for (; !error && entries != std::filesystem::directory_iterator();
       entries.increment(error)) {
    const std::string path = entries->path().string();
    const std::string task = TaskOf(entries->path().filename().string());
    // The directory has other files, too, and a task may begin later.
    if (task.empty() || tails_.contains(path)) continue;
    tails_[path] = std::make_unique<FollowedLog>(path, task, zone_);
  }
  std::vector<LogLine> lines;
  for (auto& [path, tail] : tails_) Append(tail->Poll(), lines);
  return lines;
}

std::vector<LogLine> RunLogs::Rest() {
  std::vector<LogLine> lines;
  for (auto& [path, tail] : tails_) Append(tail->Rest(), lines);
  return lines;
}

}  // namespace lockstep::cli
