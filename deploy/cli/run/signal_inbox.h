#ifndef LOCKSTEP_DEPLOY_CLI_RUN_SIGNAL_INBOX_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_SIGNAL_INBOX_H_

#include <signal.h>

#include <initializer_list>
#include <vector>

namespace lockstep {

// SignalInbox turns signals into something to be read, for as long as it
// lives. Make it before any other thread, so that all inherit the blocked
// signals.
class SignalInbox {
 public:
  explicit SignalInbox(std::initializer_list<int> signals);

  // Signals that were not taken are dropped.
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  // Readable while there are signals.
  int fd() const { return fd_; }

  // The signals that came since the last call. Several of one kind may have
  // become one.
  std::vector<int> TakeAll();

 private:
  sigset_t old_mask_;
  int fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_SIGNAL_INBOX_H_
