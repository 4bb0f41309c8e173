#include "common/process/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "common/process/process_limits.h"

namespace lockstep {
namespace {

// Above the size of any message, so that glibc neither maps each message
// separately nor returns its pages: see TuneProcess().
constexpr int kGibibyte = 1 << 30;
constexpr int kTopPadBytes = 16 << 20;
// Range of incarnations above a known one.
constexpr uint64_t kSpread = 1 << 20;
constexpr int kPreference = 10;    // levels of nice
constexpr unsigned char kEnd = 0;  // no signal has this number

constexpr uintptr_t kHugePage = 2 << 20;
constexpr size_t kHugeHeap = 256 << 20;  // address space; used as needed

// File descriptor for the handler; signal handlers have no argument to carry
// it.
std::atomic<int> handler_fd = -1;

// May call only async-signal-safe functions.
void ReportSignal(int signal) {
  const int saved_errno = errno;
  const unsigned char number = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = write(handler_fd, &number, 1);
  errno = saved_errno;
}

// Extends the heap's address range at once, so that one madvise() covers it.
void UseHugePagesForHeap() {
  void* const block = malloc(kHugeHeap);
  if (block == nullptr) return;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(block) + kHugePage - 1) /
                          kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(first), kHugeHeap - kHugePage, MADV_HUGEPAGE);
  // The address range stays the heap's: M_TRIM_THRESHOLD is above its size.
  free(block);
}

}  // namespace

void PrepareProcess() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // open() returns the lowest free number, which is this one.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

void TuneProcess() {
  PrepareProcess();
  mallopt(M_MMAP_THRESHOLD, kGibibyte);
  mallopt(M_TRIM_THRESHOLD, kGibibyte);
  mallopt(M_TOP_PAD, kTopPadBytes);
  // glibc releases an empty arena of a thread regardless of the thresholds, but
  // never the main arena, so there is only the main one.
  mallopt(M_ARENA_MAX, 1);
  UseHugePagesForHeap();
  RaiseFileLimit();
  ExplainMissingResources(kExitLost);
}

void PreferThisThread() {
  // On Linux the priority is that of one thread.
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread,
              getpriority(PRIO_PROCESS, thread) - kPreference);
}

absl::Status ExitWithParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before prctl(), and then no signal would come.
  if (getppid() != parent) {
    return absl::FailedPreconditionError(
        "--exit_with_parent: the parent process is gone");
  }
  // Process 1 adopts orphans, so it does not count as a parent.
  if (parent == 1) {
    return absl::FailedPreconditionError(
        "--exit_with_parent: the parent process is gone, or is process 1; in "
        "the latter case leave the flag out, since all processes of a "
        "container end with process 1");
  }
  return absl::OkStatus();
}

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

int EndWithin(absl::Duration grace, int code) {
  std::thread([grace, code] {
    absl::SleepFor(grace);
    // Written directly, because the log may be destroyed already.
    constexpr char kWhy[] = "ends now: gRPC has not let go of this process\n";
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, kWhy, sizeof(kWhy) - 1);
    _exit(code);
  }).detach();
  return code;
}

uint64_t DrawIncarnation(uint64_t above) {
  static std::atomic<uint64_t> newest = 0;
  const auto now = static_cast<uint64_t>(absl::GetCurrentTimeNanos() / 1000);
  uint64_t last = newest;
  uint64_t drawn = 0;
  // A loop, because another thread may draw at the same time.
  do {
    drawn = std::max(now, last + 1);
    if (drawn <= above) drawn = above + 1 + std::random_device()() % kSpread;
  } while (!newest.compare_exchange_weak(last, drawn));
  return drawn;
}

SignalWatcher::SignalWatcher(std::function<void(int signal)> callback) {
  int ends[2] = {-1, -1};
  // The handler only writes a byte: the callback may lock and allocate, which a
  // signal handler must not.
  [[maybe_unused]] const int made = pipe2(ends, O_CLOEXEC);
  read_fd_ = ends[0];
  write_fd_ = ends[1];
  // Set before the handler is installed, which reads it.
  handler_fd = write_fd_;
  struct sigaction action = {};
  action.sa_handler = ReportSignal;
  // Without SA_RESTART, system calls of libraries would fail with EINTR.
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  // nohup has it ignored.
  struct sigaction before = {};
  sigaction(SIGHUP, nullptr, &before);
  watches_hangup_ = before.sa_handler != SIG_IGN;
  if (watches_hangup_) sigaction(SIGHUP, &action, nullptr);
  thread_ = std::thread([this, callback = std::move(callback)] {
    unsigned char signal = 0;
    while (true) {
      const ssize_t got = read(read_fd_, &signal, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1 || signal == kEnd) return;
      callback(signal);
    }
  });
}

SignalWatcher::~SignalWatcher() {
  // Restores the defaults first, so that a signal from now on ends the process
  // instead of writing to a closed pipe.
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  if (watches_hangup_) std::signal(SIGHUP, SIG_DFL);
  handler_fd = -1;
  [[maybe_unused]] const ssize_t written = write(write_fd_, &kEnd, 1);
  thread_.join();
  close(read_fd_);
  close(write_fd_);
}

}  // namespace lockstep
