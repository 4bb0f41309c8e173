#ifndef LOCKSTEP_TESTS_TESTING_PAUSED_CHILD_H_
#define LOCKSTEP_TESTS_TESTING_PAUSED_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace lockstep::testing {

// PausedChild is a forked child of the test, such as a data loader's, that does
// nothing. It runs when the constructor returns, and the destructor ends it.
class PausedChild {
 public:
  PausedChild() {
    EXPECT_EQ(pipe(runs_), 0);
    EXPECT_EQ(pipe(ends_), 0);
    char byte = 0;
    child_ = fork();
    if (child_ == 0) {
      close(ends_[1]);
      if (write(runs_[1], &byte, 1) != 1) _exit(1);
      // Until the parent closes it.
      _exit(read(ends_[0], &byte, 1) == 0 ? 0 : 1);
    }
    // Handlers of fork() have run in the child by then.
    EXPECT_EQ(read(runs_[0], &byte, 1), 1);
  }
  PausedChild(const PausedChild&) = delete;
  PausedChild& operator=(const PausedChild&) = delete;
  ~PausedChild() {
    for (const int end : {runs_[0], runs_[1], ends_[0], ends_[1]}) close(end);
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
  }

 private:
  int runs_[2] = {-1, -1};
  int ends_[2] = {-1, -1};
  pid_t child_ = -1;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_PAUSED_CHILD_H_
