#include "tests/testing/pseudo_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace lockstep::testing {
namespace {

constexpr int kCannotRun = 127;

// Strings as execve() takes them. The child of a fork must not allocate, so the
// parent makes them.
class ExecStrings {
 public:
  explicit ExecStrings(std::vector<std::string> strings)
      : strings_(std::move(strings)) {
    for (std::string& s : strings_) pointers_.push_back(s.data());
    pointers_.push_back(nullptr);
  }
  ExecStrings(const ExecStrings&) = delete;
  ExecStrings& operator=(const ExecStrings&) = delete;

  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

// The environment of the test, with TERM=xterm.
std::vector<std::string> Environment() {
  std::vector<std::string> all = {"TERM=xterm"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("TERM=", 0) != 0) all.push_back(text);
  }
  return all;
}

winsize SizeOf(int columns) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = static_cast<decltype(size.ws_col)>(columns);
  return size;
}

}  // namespace

std::string ReadSoFar(int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  char buffer[4096];
  std::string text;
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

PseudoTerminal::PseudoTerminal(int columns) {
  const winsize size = SizeOf(columns);
  if (openpty(&outside_, &inside_, nullptr, nullptr, &size) != 0) {
    ADD_FAILURE() << "no terminal can be made: " << strerror(errno);
    return;
  }
  for (const int fd : {outside_, inside_}) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

PseudoTerminal::~PseudoTerminal() {
  for (const int fd : {outside_, inside_}) {
    if (fd >= 0) close(fd);
  }
}

void PseudoTerminal::Resize(int columns) const {
  const winsize size = SizeOf(columns);
  EXPECT_EQ(ioctl(outside_, TIOCSWINSZ, &size), 0) << strerror(errno);
}

std::string PseudoTerminal::Shown() const { return ReadSoFar(outside_); }

TerminalProgram::TerminalProgram(const std::string& program,
                                 const std::vector<std::string>& args,
                                 int columns) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), args.begin(), args.end());
  const ExecStrings arguments(std::move(words));
  const ExecStrings environment(Environment());
  const winsize size = SizeOf(columns);
  const pid_t test = getpid();
  pid_ = forkpty(&outside_, nullptr, nullptr, &size);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The test may have died before prctl().
    if (getppid() != test) _exit(kCannotRun);
    execve(arguments.data()[0], arguments.data(), environment.data());
    _exit(kCannotRun);
  }
  EXPECT_GT(pid_, 0) << "no terminal can be made: " << strerror(errno);
  if (outside_ >= 0) fcntl(outside_, F_SETFD, FD_CLOEXEC);
}

TerminalProgram::~TerminalProgram() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (outside_ >= 0) close(outside_);
}

std::optional<std::string> TerminalProgram::ReadMore() const {
  char buffer[4096];
  ssize_t got = 0;
  do {
    got = read(outside_, buffer, sizeof(buffer));
  } while (got < 0 && errno == EINTR);
  // The end of the last process on a terminal reads as an error, EIO.
  if (got <= 0) return std::nullopt;
  return std::string(buffer, static_cast<size_t>(got));
}

void TerminalProgram::Type(const std::string& keys) const {
  EXPECT_EQ(write(outside_, keys.data(), keys.size()),
            static_cast<ssize_t>(keys.size()))
      << strerror(errno);
}

int TerminalProgram::Wait() {
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_) << strerror(errno);
  pid_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace lockstep::testing
