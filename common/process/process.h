#ifndef LOCKSTEP_COMMON_PROCESS_PROCESS_H_
#define LOCKSTEP_COMMON_PROCESS_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep {

// Exit codes, for the program that started the process: 0 is done, 1 to 127 ask
// for no restart, 128 and above ask for a restart.
enum ExitCode : int {
  kExitDone = 0,
  // The job failed, this process cannot take part, or a newer one runs its
  // task.
  kExitFailed = 1,
  kExitUsage = 2,   // bad flags, files or environment
  kExitHeld = 3,    // an operator has stopped the job, or taken out the worker
  kExitLost = 129,  // a peer is gone
  kExitStopped = 143,  // stopped before the job was done, in good order
};

// Opens /dev/null in place of each standard stream that is closed: a socket or
// a pipe that took its number would receive the log. Makes a write beyond the
// limit of a file's size (ulimit -f) fail with EFBIG, where SIGXFSZ would end
// the process. Must be the first call in main.
void PrepareProcess();

// PrepareProcess(), and tunes the process for moving tensors. Must be the first
// call in main, before other threads exist.
//
// Memory of received messages is kept: by default glibc returns the pages of
// each message and faults them in again for the next one, which halves
// throughput. The first 256 MiB of the heap use huge pages if the system allows
// it. ReturnFreeMemory() returns the rest of spikes.
//
// Raises the limit of open files to the maximum that the system allows. If the
// process ends because a thread cannot be created or there is no memory, it
// names the limit.
void TuneProcess();

// Raises the priority of the calling thread above computing threads, if the
// system allows it: for a thread with little work that must not be late.
void PreferThisThread();

// Asks the kernel to kill this process when its parent ends.
//
//   kFailedPrecondition  the parent is gone already, or is process 1, which
//                        adopts processes whose parent is gone
absl::Status ExitWithParent();

// Ends the process with `code` if it has not ended by itself after `grace`, and
// reports that on standard error; returns `code`, for main to return. Must be
// called when the process's work is done: gRPC releases its servers and
// channels without any limit of time, and the exit must not wait for that.
int EndWithin(absl::Duration grace, int code);

// Returns this host's name, cut to 255 bytes; "" where the system has none.
std::string HostName();

// Returns a number larger than `above` and than all that this process has
// drawn: wall time in microseconds if that is larger, otherwise a random number
// up to 2^20 above `above`, so that two processes draw different ones. Clocks
// need not agree: the refusal of an older incarnation contains the newest one,
// and the process draws again, above that.
//
// Threads: safe to call from any thread.
uint64_t DrawIncarnation(uint64_t above = 0);

// SignalWatcher runs a callback, in its own thread, at each SIGTERM, SIGINT and
// SIGHUP, whichever thread of the process receives the signal: libraries may
// have started threads before main. A SIGHUP that was ignored before, as by
// nohup, stays so. Only one may exist in a process at a time.
//
// Threads: the callback runs in one thread, one call after the other.
class SignalWatcher {
 public:
  explicit SignalWatcher(std::function<void(int signal)> callback);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  int read_fd_;
  int write_fd_;
  bool watches_hangup_ = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_PROCESS_H_
