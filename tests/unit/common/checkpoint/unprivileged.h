#ifndef LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_UNPRIVILEGED_H_
#define LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_UNPRIVILEGED_H_

#include <sys/fsuid.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace lockstep {

// During the life of an Unprivileged, permissions of files hold for the calling
// thread, also if the test runs as root. The directory that the constructor
// gets, and all files made meanwhile, are the thread's own.
class Unprivileged {
 public:
  explicit Unprivileged(const std::string& directory) {
    if (!root_) return;
    EXPECT_EQ(chown(directory.c_str(), kNobody, static_cast<gid_t>(-1)), 0);
    setfsuid(kNobody);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (root_) setfsuid(0);
  }

 private:
  static constexpr uid_t kNobody = 65534;

  const bool root_ = geteuid() == 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COMMON_CHECKPOINT_UNPRIVILEGED_H_
