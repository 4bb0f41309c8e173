#include "common/process/process_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/control_group.h"
#include "common/base/mutex.h"

namespace lockstep {
namespace {

std::string Soft(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    return "unknown";
  }
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited"
                                         : absl::StrCat(limit.rlim_cur);
}

std::string OfGroup(const GroupLimit& kind) {
  const std::optional<uint64_t> limit = LimitOfGroups(kind);
  return limit.has_value() ? absl::StrCat(*limit) : "unlimited";
}

std::string MemoryLimits() {
  return absl::StrCat(
      "raise the limit that is in the way: bytes of address space (ulimit -v) ",
      Soft(RLIMIT_AS), ", memory of the control group (MemoryMax, memory.max) ",
      OfGroup(kMemoryOfGroup));
}

// Threads that wait for one another, so that all exist at the same time.
class Crowd {
 public:
  ~Crowd() {
    {
      MutexLock lock(mutex_);
      leave_ = true;
      changed_.SignalAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // Throws the exceptions of std::thread.
  void Grow() {
    threads_.emplace_back([this] {
      MutexLock lock(mutex_);
      while (!leave_) changed_.Wait(mutex_);
    });
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool leave_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// The previous handler, which explains all other exceptions.
std::terminate_handler other_handler = nullptr;
int exit_code = 1;

[[noreturn]] void EndWith(const std::string& why) {
  const std::string words = absl::StrCat("ends: ", why, "\n");
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, words.data(), words.size());
  _exit(exit_code);
}

[[noreturn]] void Explain() {
  try {
    if (std::exception_ptr thrown = std::current_exception()) {
      std::rethrow_exception(thrown);
    }
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      EndWith(absl::StrCat("a thread cannot be made; ", ThreadLimits()));
    }
  } catch (const std::bad_alloc&) {
    EndWith(absl::StrCat("there is no memory; ", MemoryLimits()));
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next line says it
  }
  if (other_handler != nullptr) other_handler();
  std::abort();
}

}  // namespace

void RaiseFileLimit() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

std::string ThreadLimits() {
  return absl::StrCat(
      "raise the limit that is in the way: processes of a user "
      "(ulimit -u) ",
      Soft(RLIMIT_NPROC), ", tasks of the control group (TasksMax, pids.max) ",
      OfGroup(kTasksOfGroup), ", bytes of address space (ulimit -v) ",
      Soft(RLIMIT_AS), ", of which a thread takes ", Soft(RLIMIT_STACK),
      " (ulimit -s)");
}

absl::Status CheckThreads(int count) {
  Crowd crowd;
  for (int i = 0; i < count; ++i) {
    try {
      crowd.Grow();
      // The destructor of Crowd ends the threads made so far.
    } catch (const std::system_error&) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "only ", i, " of ", count, " threads can be made; ", ThreadLimits()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(int count) {
  std::vector<int> files;
  while (static_cast<int>(files.size()) < count) {
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file < 0) break;
    files.push_back(file);
  }
  for (const int file : files) close(file);
  if (static_cast<int>(files.size()) == count) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "only ", files.size(), " of ", count,
      " more files and connections can be open at once; raise the limit of "
      "open files (ulimit -n, LimitNOFILE), ",
      Soft(RLIMIT_NOFILE)));
}

void ExplainMissingResources(int code) {
  exit_code = code;
  const std::terminate_handler now = std::set_terminate(Explain);
  // After a second call the previous handler is Explain() itself, which must
  // not call itself.
  if (now != Explain) other_handler = now;
}

}  // namespace lockstep
