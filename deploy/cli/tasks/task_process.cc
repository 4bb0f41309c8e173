#include "deploy/cli/tasks/task_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::cli {
namespace {

// As a shell reports a program that is not there.
constexpr int kCannotRun = 127;
// The end of a process that other code has waited for: it may have failed.
constexpr TaskExit kUnknownEnd = {.code = 1};

// Arguments of execve(), made before fork(), because a child must not allocate.
class ExecVector {
 public:
  explicit ExecVector(std::vector<std::string> strings)
      : strings_(std::move(strings)) {
    for (std::string& s : strings_) pointers_.push_back(s.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

std::vector<std::string> Arguments(const TaskProcess::Options& options) {
  std::vector<std::string> all = {options.program};
  all.insert(all.end(), options.args.begin(), options.args.end());
  return all;
}

std::vector<std::string> Environment(
    const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::vector<std::string> parts =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    if (!added.contains(parts.front())) all.push_back(*entry);
  }
  for (const auto& [name, value] : added) {
    all.push_back(absl::StrCat(name, "=", value));
  }
  return all;
}

// Plain values, because the child of fork() must not allocate.
struct Launch {
  const char* program;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  int log_fd;
  int error_fd;  // takes the errno of a program that cannot be run
};

// Code of the child: may use only calls that are safe after fork(). It resets
// signals that the parent blocks or ignores, because the program would inherit
// that.
[[noreturn]] void RunChild(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl(), and then no signal would come.
  if (getppid() != launch.parent) _exit(kCannotRun);
  // A group of its own, so that a terminal's Ctrl-C does not reach the program.
  setpgid(0, 0);
  // A Ctrl-C that came before, to the group of the parent, is not for the
  // program: ignored for a moment, a pending signal is dropped. Those that
  // cannot be set are refused, without effect.
  for (int number = 1; number < NSIG; ++number) {
    signal(number, SIG_IGN);
    signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // A program that reads gets the end of a file instead of the terminal's keys.
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(launch.log_fd, STDOUT_FILENO);
  dup2(launch.log_fd, STDERR_FILENO);
  // Descriptors that libraries of the parent opened without O_CLOEXEC, such as
  // reserved ports, must not reach the program. CLOEXEC instead of closing: the
  // error pipe is still needed.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  execve(launch.program, launch.arguments, launch.environment);
  const int error = errno;
  // The parent has gone if this fails; then there is nothing left to tell.
  if (write(launch.error_fd, &error, sizeof(error)) < 0) _exit(kCannotRun);
  _exit(kCannotRun);
}

// Returns the errno that the child sent; 0 when the program runs.
int ReadStartError(int fd) {
  int error = 0;
  ssize_t got = 0;
  // exec() closes the pipe, so an end without data means that the program runs.
  do {
    got = read(fd, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

absl::StatusOr<pid_t> Fork(const TaskProcess::Options& options, int log_fd) {
  const ExecVector arguments(Arguments(options));
  const ExecVector environment(Environment(options.environment));
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no pipe can be made: ", strerror(errno)));
  }
  // While SIGCHLD is ignored, which a process may inherit, the kernel drops the
  // ends of children: waitpid() would not find them.
  struct sigaction action = {};
  sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler == SIG_IGN) signal(SIGCHLD, SIG_DFL);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    RunChild({options.program.c_str(), arguments.data(), environment.data(),
              parent, log_fd, error_pipe[1]});
  }
  // The next calls change errno.
  const int fork_error = errno;
  // Otherwise the pipe would not end while this process reads it.
  close(error_pipe[1]);
  const int start_error = pid > 0 ? ReadStartError(error_pipe[0]) : 0;
  close(error_pipe[0]);
  if (pid < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no process can be made: ", strerror(fork_error)));
  }
  if (start_error == 0) return pid;
  // The child ends, and would stay a zombie.
  waitpid(pid, nullptr, 0);
  return absl::InvalidArgumentError(absl::StrCat(
      options.program, ": cannot be run: ", strerror(start_error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskProcess>> TaskProcess::Start(
    const Options& options) {
  // O_APPEND: the program goes on at the new end after RotateLog() has emptied
  // the file.
  const int log_fd = open(options.log_path.c_str(),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_fd < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.log_path, ": cannot be written: ", strerror(errno)));
  }
  const absl::StatusOr<pid_t> pid = Fork(options, log_fd);
  close(log_fd);
  if (!pid.ok()) return pid.status();
  return std::unique_ptr<TaskProcess>(new TaskProcess(*pid));
}

TaskProcess::~TaskProcess() {
  if (exit_.has_value()) return;
  kill(-pid_, SIGKILL);
  // The group may not exist yet, so the process gets the signal by itself, too.
  kill(pid_, SIGKILL);
  Reap(0);
}

void TaskProcess::Signal(int signal) {
  if (exit_.has_value()) return;
  kill(pid_, signal);
  // Other signals leave it to the program to end what it has started.
  if (signal == SIGKILL) kill(-pid_, SIGKILL);
}

std::optional<TaskExit> TaskProcess::Poll() {
  // After waitpid() the pid may be reused, so it must be called only once.
  if (exit_.has_value()) return exit_;
  exit_ = Reap(WNOHANG);
  return exit_;
}

// Processes that the program left in its group are killed, too.
std::optional<TaskExit> TaskProcess::Reap(int options) {
  siginfo_t ended = {};
  int failed = 0;
  do {
    failed = waitid(P_PID, static_cast<id_t>(pid_), &ended,
                    WEXITED | WNOWAIT | options);
  } while (failed != 0 && errno == EINTR);
  // The pid is free, and may already be that of a stranger, so that nothing may
  // be sent to it.
  if (failed != 0 && errno == ECHILD) return kUnknownEnd;
  // With WNOHANG no id means that it runs.
  if (failed != 0 || ended.si_pid != pid_) return std::nullopt;
  // WNOWAIT has left the pid, and so the group's id, to the process that ended.
  kill(-pid_, SIGKILL);
  int status = 0;
  pid_t got = 0;
  do {
    got = waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  return got == pid_ ? TaskExit::FromWaitStatus(status) : kUnknownEnd;
}

}  // namespace lockstep::cli
