#include "deploy/cli/run/signal_inbox.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace lockstep::cli {
namespace {

std::atomic<pid_t> owner_process = 0;
std::atomic<pid_t> owner_thread = 0;

// Runs in a thread that does not block the signal, and may call only
// async-signal-safe functions.
void PassOn(int signal) {
  const int saved_errno = errno;
  if (getpid() == owner_process && gettid() != owner_thread) {
    tgkill(owner_process, owner_thread, signal);
  } else {
    // A forked child, before it has become another program.
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  errno = saved_errno;
}

// A signal that is blocked is read although it is ignored.
bool StaysIgnored(int signal) {
  if (signal != SIGHUP && signal != SIGQUIT) return false;
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

SignalInbox::SignalInbox(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    if (!StaysIgnored(signal)) sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, &old_mask_);
  owner_process = getpid();
  owner_thread = gettid();
  struct sigaction pass_on = {};
  pass_on.sa_handler = PassOn;
  pass_on.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    if (sigismember(&set, signal) == 0) continue;
    old_actions_.emplace_back(signal, (struct sigaction){});
    sigaction(signal, &pass_on, &old_actions_.back().second);
  }
  // Nonblocking, so that TakeAll() can read until nothing is left.
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalInbox::~SignalInbox() {
  // A signal that is still pending would act as soon as it is not blocked, and
  // most of them end the process.
  TakeAll();
  for (const auto& [signal, action] : old_actions_) {
    sigaction(signal, &action, nullptr);
  }
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

std::vector<int> SignalInbox::TakeAll() {
  std::vector<int> signals;
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof(info)) == sizeof(info)) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

std::optional<int> SignalInbox::TakeStop() {
  std::optional<int> stop;
  for (const int signal : TakeAll()) {
    if (!stop.has_value() && IsStop(signal)) stop = signal;
  }
  return stop;
}

}  // namespace lockstep::cli
