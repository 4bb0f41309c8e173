#include "worker/data/data_root.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/data/files/array_file.h"

namespace lockstep::worker {
namespace {

namespace fs = std::filesystem;

// True if `path` is `root` or below it. Symbolic links are resolved as far as
// the path exists; ".." in the rest is removed by name.
bool IsBelow(const std::string& path, const std::string& root) {
  std::error_code no_path;
  std::error_code no_root;
  fs::path file = fs::absolute(path, no_path);
  if (!no_path) file = fs::weakly_canonical(file, no_path);
  const fs::path directory = fs::canonical(root, no_root);
  if (no_path || no_root) return false;
  // Compares whole components: "/data2" is not below "/data".
  const auto [end, rest] = std::mismatch(directory.begin(), directory.end(),
                                         file.begin(), file.end());
  return end == directory.end();
}

// A root that is missing is no mistake by itself: the units name one for each
// place that a machine may have data in. It may be misspelt, though.
std::string Described(const std::string& root) {
  std::error_code error;
  return fs::is_directory(root, error)
             ? root
             : absl::StrCat(root, " (there is no such directory)");
}

absl::Status Check(const std::string& field, const std::string& path,
                   const std::vector<std::string>& roots) {
  // Without --data_root a job may name any file.
  if (path.empty() || roots.empty()) return absl::OkStatus();
  std::vector<std::string> described;
  for (const std::string& root : roots) {
    if (IsBelow(path, root)) return absl::OkStatus();
    described.push_back(Described(root));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(field, " is ", path, ", which is not below --data_root ",
                   absl::StrJoin(described, " or "),
                   "; move the file there, or give one more --data_root"));
}

// "FILE.npz:NAME" names a member of FILE.npz, but only to the reader of arrays:
// to all others it is the path of a file.
absl::Status CheckArray(const std::string& field, const std::string& path,
                        const std::vector<std::string>& roots) {
  return Check(field, SplitArrayPath(path).file, roots);
}

absl::Status CheckAll(const std::string& field,
                      const std::vector<std::string>& paths,
                      const std::vector<std::string>& roots) {
  for (const std::string& path : paths) {
    LOCKSTEP_RETURN_IF_ERROR(Check(field, path, roots));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWorkerFiles(const JobConfig& job,
                              const std::vector<std::string>& roots) {
  const DataConfig& data = job.data;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckArray("data.train_images", data.train_images, roots));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckArray("data.train_labels", data.train_labels, roots));
  LOCKSTEP_RETURN_IF_ERROR(Check("data.train_text", data.train_text, roots));
  return CheckAll("data.train_files", data.train_files, roots);
}

absl::Status CheckEvaluatorFiles(const JobConfig& job,
                                 const std::vector<std::string>& roots) {
  const DataConfig& data = job.data;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckArray("data.test_images", data.test_images, roots));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckArray("data.test_labels", data.test_labels, roots));
  LOCKSTEP_RETURN_IF_ERROR(Check("data.test_text", data.test_text, roots));
  LOCKSTEP_RETURN_IF_ERROR(CheckAll("data.test_files", data.test_files, roots));
  return Check("checkpoint.directory", job.checkpoint.directory, roots);
}

}  // namespace lockstep::worker
