#ifndef LOCKSTEP_COMMON_PROCESS_PROCESS_H_
#define LOCKSTEP_COMMON_PROCESS_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep {

// What a process's exit code tells whoever started it: 0 is done, 1 to 127 ask
// not to be restarted, 128 and above ask for it.
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

// Fits the process to moving tensors. Call first in main, before other threads
// exist.
//
// Received memory is kept: glibc alone gives the pages of each message back and
// faults them in again for the next, which halves throughput. The first 256 MiB
// of the heap are of huge pages where the system allows it, and Debian's Abseil
// does not look for deadlocks at each lock that gRPC takes: together a tenth of
// a step's processor time. ReturnFreeMemory() gives back what is left of
// spikes.
//
// It may open as many files as the system allows, and says which limit was in
// the way where it ends because a thread cannot be made.
void TuneProcess();

// Has the calling thread run before those that compute, where the system allows
// it: for a thread that has little to do, but must not be late with it.
void PreferThisThread();

// Asks the kernel to kill this process when its parent ends.
//
//   kFailedPrecondition  the parent is gone already
absl::Status ExitWithParent();

// Ends the process with `code` where it has not ended by itself after `grace`,
// and says so on standard error; returns `code`, for main to return. What the
// process was there for is done by then, and nobody ought to wait for gRPC,
// which lets go of its servers and channels without any limit of time.
int EndWithin(absl::Duration grace, int code);

// A number larger than `above` and than all that this process has drawn: wall
// time in microseconds, where that is, or else up to 2^20 above `above`, by
// chance, so that two processes do not draw the same. Clocks need not agree:
// the refusal of an older incarnation has the newest one, and the process draws
// again, above that.
//
// Threads: safe to call from any thread.
uint64_t DrawIncarnation(uint64_t above = 0);

// SignalWatcher runs a callback, in a thread of its own, at each SIGTERM and
// SIGINT, whichever thread of the process receives it: libraries may have
// started threads before main. One at a time in a process.
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
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_PROCESS_H_
