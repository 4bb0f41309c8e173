#include "common/process.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

constexpr int kGibibyte = 1 << 30;
constexpr int kTopPadBytes = 16 << 20;

}  // namespace

void TuneAllocator() {
  mallopt(M_MMAP_THRESHOLD, kGibibyte);
  mallopt(M_TRIM_THRESHOLD, kGibibyte);
  mallopt(M_TOP_PAD, kTopPadBytes);
}

absl::Status ExitWithParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || parent == 1) {
    return absl::FailedPreconditionError(
        "--exit_with_parent: the parent process is gone");
  }
  return absl::OkStatus();
}

uint64_t DrawIncarnation() {
  return static_cast<uint64_t>(absl::GetCurrentTimeNanos() / 1000);
}

SignalWatcher::SignalWatcher(std::function<void(int signal)> callback) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, callback = std::move(callback)] {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    while (true) {
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) return;
      signalfd_siginfo info;
      if (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
        callback(static_cast<int>(info.ssi_signo));
      }
    }
  });
}

SignalWatcher::~SignalWatcher() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(stop_fd_, &one, sizeof(one));
  thread_.join();
  close(stop_fd_);
  close(signal_fd_);
}

}  // namespace lockstep
