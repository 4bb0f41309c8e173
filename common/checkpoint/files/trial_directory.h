#ifndef LOCKSTEP_COMMON_CHECKPOINT_FILES_TRIAL_DIRECTORY_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FILES_TRIAL_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// TrialDirectory is a directory in which a check tries something out. The
// destructor removes those directories that Make() created, as far as they are
// empty: a refused job leaves nothing behind.
//
// Threads: not thread-safe.
class TrialDirectory {
 public:
  // Creates `path` and its missing parents. Errors: of MakeDirectories(); then
  // nothing is left behind either.
  static absl::StatusOr<TrialDirectory> Make(const std::string& path);

  TrialDirectory(TrialDirectory&& other) = default;
  TrialDirectory& operator=(TrialDirectory&& other) = delete;
  ~TrialDirectory();

 private:
  explicit TrialDirectory(std::vector<std::string> missing);

  std::vector<std::string> missing_;  // the deepest first
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FILES_TRIAL_DIRECTORY_H_
