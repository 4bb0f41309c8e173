#ifndef LOCKSTEP_DEPLOY_CLI_RUN_STATE_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_STATE_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// StateDirectory is where the servers of one run keep their state. A lock on a
// file in it lasts as long as this process, however it ends: whoever can take
// the lock knows that the run is over.
class StateDirectory {
 public:
  // Makes a private directory in `parent` and removes those that dead
  // launchers of this user left there. The destructor removes it again.
  //
  //   kInvalidArgument  no directory can be made in `parent`
  static absl::StatusOr<std::unique_ptr<StateDirectory>> CreateIn(
      const std::string& parent);

  // Takes `path` as it is, made private if it is new. The destructor leaves it
  // there, with what the servers left in it.
  //
  //   kInvalidArgument     it is no PrivateDirectory, or cannot be made or
  //                        written
  //   kFailedPrecondition  another run uses it
  static absl::StatusOr<std::unique_ptr<StateDirectory>> Adopt(
      const std::string& path);

  // /dev/shm where there is one, else $TMPDIR or /tmp.
  static std::string DefaultParent();

  ~StateDirectory();
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Makes a private directory in this one; one that is there is fine.
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

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_STATE_DIRECTORY_H_
