#ifndef LOCKSTEP_DEPLOY_CLI_RUN_STATE_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_STATE_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::cli {

// StateDirectory holds the state of the servers of one run. A lock on a file in
// it lasts as long as this process, however it ends; if another process can
// take the lock, the run is over.
//
// Threads: immutable; safe to share.
class StateDirectory {
 public:
  // Creates a private directory in `parent` and removes those of dead launchers
  // of this user. The destructor removes it.
  //
  //   kInvalidArgument  no directory can be made in `parent`
  static absl::StatusOr<std::unique_ptr<StateDirectory>> CreateIn(
      const std::string& parent);

  // Uses `path` itself, which it creates as a private directory if necessary.
  // The destructor keeps it, with the state that the servers left.
  //
  //   kInvalidArgument     it is no PrivateDirectory, or cannot be made or
  //                        written
  //   kFailedPrecondition  another run uses it
  static absl::StatusOr<std::unique_ptr<StateDirectory>> Adopt(
      const std::string& path);

  // Returns /dev/shm if it exists, else $TMPDIR or /tmp.
  static std::string DefaultParent();

  ~StateDirectory();
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Creates a private directory in this one, or accepts an existing one.
  //
  //   kInvalidArgument  it cannot be made
  absl::Status MakeChild(const std::string& child_path) const;

 private:
  StateDirectory(std::string path, int lock_fd, bool remove)
      : path_(std::move(path)), lock_fd_(lock_fd), remove_(remove) {}

  const std::string path_;
  const int lock_fd_;
  const bool remove_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_STATE_DIRECTORY_H_
