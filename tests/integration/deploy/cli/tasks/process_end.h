#ifndef LOCKSTEP_TESTS_INTEGRATION_DEPLOY_CLI_TASKS_PROCESS_END_H_
#define LOCKSTEP_TESTS_INTEGRATION_DEPLOY_CLI_TASKS_PROCESS_END_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace lockstep::testing {

// Many times what any process takes on a quiet machine.
inline constexpr int kProcessPatienceMillis = 60'000;

// Waits until a process, of any parent, has ended. False if it still runs after
// kProcessPatienceMillis.
inline bool WaitUntilGone(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return true;
  pollfd ended = {fd, POLLIN, 0};
  const bool gone = poll(&ended, 1, kProcessPatienceMillis) == 1;
  close(fd);
  return gone;
}

// PidPipe is a file to which a program writes its process id; the test waits
// and reads it.
class PidPipe {
 public:
  explicit PidPipe(const std::string& path)
      : path_(path),
        fd_(mkfifo(path.c_str(), 0600) == 0 ? open(path.c_str(), O_RDWR) : -1) {
  }
  ~PidPipe() { close(fd_); }
  PidPipe(const PidPipe&) = delete;
  PidPipe& operator=(const PidPipe&) = delete;

  const std::string& path() const { return path_; }

  // Returns -1 if there is none within kProcessPatienceMillis.
  pid_t Read() const {
    std::string line;
    char c = 0;
    pollfd readable = {fd_, POLLIN, 0};
    while (poll(&readable, 1, kProcessPatienceMillis) == 1 &&
           read(fd_, &c, 1) == 1) {
      if (c == '\n') return std::atoi(line.c_str());
      line.push_back(c);
    }
    return -1;
  }

 private:
  const std::string path_;
  const int fd_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_DEPLOY_CLI_TASKS_PROCESS_END_H_
