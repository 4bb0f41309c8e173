#include "deploy/cli/tasks/log_files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text/log_form.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

// Enough for a few lines, however long the log is.
constexpr int64_t kMaxTailBytes = 64 << 10;
constexpr int64_t kMaxTextBytes = 16 << 20;

absl::Status Refused(const std::string& path, absl::string_view what,
                     absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what, ": ", why));
}

std::string ReadFrom(const std::string& path, int64_t start) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(start);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int64_t FileSize(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// Copies instead of renaming, because the process has the file open.
absl::Status RotateLog(const std::string& path) {
  // In the same directory, because rename() does not leave a file system.
  const std::string hidden = absl::StrCat(path, ".", getpid());
  std::error_code error;
  std::filesystem::copy_file(
      path, hidden, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) std::filesystem::rename(hidden, path + ".1", error);
  if (!error) std::filesystem::resize_file(path, 0, error);
  if (!error) return absl::OkStatus();
  unlink(hidden.c_str());
  return Refused(path, "cannot be cut", error.message());
}

void MarkNewRun(const std::string& path, absl::Time now) {
  // An empty log has no lines to be told from the new ones.
  if (FileSize(path) == 0) return;
  std::ofstream(path, std::ios::binary | std::ios::app)
      << InfoLogHead(now, absl::LocalTimeZone())
      << "lockstep run: a new run begins\n";
}

std::vector<std::string> ReadLastLines(const std::string& path, int64_t start,
                                       size_t lines, size_t columns) {
  const int64_t from = std::max(start, FileSize(path) - kMaxTailBytes);
  std::vector<std::string> all =
      absl::StrSplit(ReadFrom(path, from), '\n', absl::SkipWhitespace());
  if (all.size() > lines) all.erase(all.begin(), all.end() - lines);
  for (std::string& line : all) line = Clip(Printable(line), columns);
  return all;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Refused(path, "cannot be read",
                   error ? error.message() : "it is no file");
  }
  if (FileSize(path) > kMaxTextBytes) {
    return Refused(path, "cannot be read",
                   absl::StrCat("it is larger than ", kMaxTextBytes, " bytes"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) {
    return Refused(path, "cannot be read", strerror(errno));
  }
  return text;
}

absl::StatusOr<std::string> ReadFlagFile(absl::string_view flag,
                                         const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", text.status().message()));
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  const std::string hidden = absl::StrCat(path, ".", getpid());
  std::ofstream file(hidden, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file || rename(hidden.c_str(), path.c_str()) != 0) {
    const absl::Status status =
        Refused(path, "cannot be written", strerror(errno));
    unlink(hidden.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::cli
