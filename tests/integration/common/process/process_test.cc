#include "common/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// Records the signals that a watcher reports.
class SignalLog {
 public:
  void Add(int signal) {
    MutexLock lock(mutex_);
    signals_.push_back(signal);
    changed_.SignalAll();
  }
  std::vector<int> WaitFor(size_t count) {
    MutexLock lock(mutex_);
    while (signals_.size() < count) changed_.Wait(mutex_);
    return signals_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> signals_ ABSL_GUARDED_BY(mutex_);
};

TEST(ProcessTest, LaterIncarnationIsNotSmaller) {
  const uint64_t first = DrawIncarnation();
  const uint64_t second = DrawIncarnation();

  EXPECT_GT(second, first);
  EXPECT_GT(first, uint64_t{1'600'000'000'000'000});  // microseconds
}

TEST(ProcessTest, IncarnationIsAboveWhatIsKnownAndNeverFallsBack) {
  const uint64_t ahead = DrawIncarnation() + 3'600'000'000;  // an hour

  const uint64_t drawn = DrawIncarnation(ahead);

  EXPECT_GT(drawn, ahead);
  EXPECT_LE(drawn, ahead + (1 << 20));
  // Another process draws the same one in a million times.
  EXPECT_NE(drawn, ahead + 1);
  EXPECT_EQ(DrawIncarnation(), drawn + 1);
}

TEST(ProcessTest, PreferredThreadIsNoOther) {
  const auto nice = [] {
    return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  };
  const int before = nice();
  int preferred = before;

  std::thread([&] {
    PreferThisThread();
    preferred = nice();
  }).join();

  EXPECT_EQ(nice(), before);
  EXPECT_LE(preferred, before);  // lower if the system allows it
}

TEST(ProcessTest, TunedProcessStillAllocates) {
  TuneProcess();

  std::vector<char> large(size_t{64} << 20, 'x');

  EXPECT_EQ(large.back(), 'x');
}

// Ends with 0 if no later file can take the number of a standard stream.
void EndWithClosedStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
  PrepareProcess();
  const int next = open("/", O_RDONLY);
  _exit(next > STDERR_FILENO && write(STDERR_FILENO, "x", 1) == 1 ? 0 : 1);
}

TEST(PrepareProcessDeathTest, StandardStreamsThatAreClosedAreOpened) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(EndWithClosedStreams(), ::testing::ExitedWithCode(0), "");
}

// Ends with 0 if a file that is too large is an error.
void EndWithALargeFile(const std::string& path) {
  PrepareProcess();
  const rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
  setrlimit(RLIMIT_FSIZE, &limit);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  const bool first = write(fd, "a", 1) == 1;
  _exit(first && write(fd, "b", 1) < 0 && errno == EFBIG ? 0 : 1);
}

TEST(PrepareProcessDeathTest, FileBeyondItsLimitIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/limited-", getpid());
  EXPECT_EXIT(EndWithALargeFile(path), ::testing::ExitedWithCode(0), "");
  unlink(path.c_str());
}

TEST(ProcessTest, ExitCodesSayWhetherToRestart) {
  EXPECT_EQ(kExitDone, 0);
  for (int code : {kExitFailed, kExitUsage}) EXPECT_LT(code, 128);
  for (int code : {kExitLost, kExitStopped}) EXPECT_GE(code, 128);
}

TEST(EndWithinDeathTest, ProcessThatDoesNotEndIsEnded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        EndWithin(absl::Milliseconds(20), 7);
        while (true) pause();
      },
      ::testing::ExitedWithCode(7), "ends now");
}

TEST(EndWithinDeathTest, ProcessThatEndsIsLeftAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(EndWithin(absl::Hours(1), 3)), ::testing::ExitedWithCode(3),
              "^$");
}

TEST(SignalWatcherTest, EverySignalIsReportedInTurn) {
  SignalLog log;
  SignalWatcher watcher([&](int signal) { log.Add(signal); });

  kill(getpid(), SIGTERM);
  EXPECT_THAT(log.WaitFor(1), ElementsAre(SIGTERM));
  kill(getpid(), SIGINT);
  EXPECT_THAT(log.WaitFor(2), ElementsAre(SIGTERM, SIGINT));
  kill(getpid(), SIGHUP);
  EXPECT_THAT(log.WaitFor(3), ElementsAre(SIGTERM, SIGINT, SIGHUP));
}

TEST(SignalWatcherTest, AHangupThatIsIgnoredStaysIgnored) {
  SignalLog log;
  signal(SIGHUP, SIG_IGN);
  {
    SignalWatcher watcher([&](int signal) { log.Add(signal); });
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    EXPECT_THAT(log.WaitFor(1), ElementsAre(SIGTERM));
  }
  EXPECT_EQ(signal(SIGHUP, SIG_DFL), SIG_IGN);
}

// Like the threads that OpenBLAS starts before main.
TEST(SignalWatcherTest, SignalsOfThreadsThatWereThereBeforeAreReported) {
  SignalLog log;
  std::atomic<bool> done = false;
  std::thread older([&] {
    while (!done) std::this_thread::yield();
  });
  SignalWatcher watcher([&](int signal) { log.Add(signal); });

  pthread_kill(older.native_handle(), SIGTERM);

  EXPECT_THAT(log.WaitFor(1), ElementsAre(SIGTERM));
  done = true;
  older.join();
}

TEST(SignalWatcherTest, EndsWithoutASignal) {
  SignalLog log;
  {
    SignalWatcher watcher([&](int signal) { log.Add(signal); });
  }

  EXPECT_THAT(log.WaitFor(0), ElementsAre());
}

// A process whose parent ends must end, too, or report that it is too late.
TEST(ExitWithParentTest, ChildEndsWithItsParent) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() == 0) {
      const bool ok = ExitWithParent().ok();
      const char text = ok ? 'y' : 'n';
      if (write(pipe_fds[1], &text, 1) != 1) _exit(1);
      while (true) pause();
    }
    char text = 0;
    _exit(read(pipe_fds[0], &text, 1) == 1 && text == 'y' ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(pipe_fds[1]);

  // The grandchild held the other end: read() returns when it is gone.
  char text = 0;
  EXPECT_EQ(read(pipe_fds[0], &text, 1), 0);
  close(pipe_fds[0]);
}

}  // namespace
}  // namespace lockstep
