#ifndef LOCKSTEP_DEPLOY_CLI_RUN_SIGNAL_INBOX_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_SIGNAL_INBOX_H_

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::cli {

// SignalInbox turns signals into readable events during its life, for the
// thread that has constructed it: this thread must read them. One may exist at
// a time. Threads that exist before, such as those of a BLAS library, pass
// their signals on.
class SignalInbox {
 public:
  // Blocks `signals` in this thread, and in threads and programs that it
  // starts: a program must be started with another mask (see TaskProcess). A
  // SIGHUP or SIGQUIT that is ignored, as by nohup, stays so and is not read.
  explicit SignalInbox(std::initializer_list<int> signals);

  // Drops the signals that were not taken.
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  // Readable while there are signals.
  int fd() const { return fd_; }

  // Returns the signals since the last call. Several of one kind may be merged.
  std::vector<int> TakeAll();

  // As TakeAll(), but returns only the first signal that asks this process to
  // stop, if one has come.
  std::optional<int> TakeStop();

  // True unless nothing happens by default when the signal comes.
  static bool IsStop(int signal) {
    return signal != SIGCHLD && signal != SIGWINCH;
  }

 private:
  sigset_t old_mask_;
  std::vector<std::pair<int, struct sigaction>> old_actions_;
  int fd_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_SIGNAL_INBOX_H_
