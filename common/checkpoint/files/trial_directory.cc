#include "common/checkpoint/files/trial_directory.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"

namespace lockstep {

absl::StatusOr<TrialDirectory> TrialDirectory::Make(const std::string& path) {
  std::vector<std::string> missing;
  std::error_code error;
  for (std::filesystem::path level = path;
       !level.empty() && !std::filesystem::exists(level, error);
       level = level.parent_path()) {
    missing.push_back(level);
  }
  TrialDirectory made(std::move(missing));
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path));
  return made;
}

TrialDirectory::TrialDirectory(std::vector<std::string> missing)
    : missing_(std::move(missing)) {}

TrialDirectory::~TrialDirectory() {
  // rmdir() removes no directory that has something in it, and "a/b/", whose
  // parent "a/b" is the same directory, is removed once.
  for (const std::string& level : missing_) rmdir(level.c_str());
}

}  // namespace lockstep
