#ifndef LOCKSTEP_TESTS_UNIT_COMMON_PROCESS_FORBID_THREADS_H_
#define LOCKSTEP_TESTS_UNIT_COMMON_PROCESS_FORBID_THREADS_H_

#include <sys/resource.h>
#include <unistd.h>

namespace lockstep {

// For a separate process: makes further threads impossible. Needs a user
// without rights, because the limit does not hold for root.
inline void ForbidThreads() {
  const rlimit one = {1, 1};
  if (setrlimit(RLIMIT_NPROC, &one) != 0) _exit(1);
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(1);
}

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COMMON_PROCESS_FORBID_THREADS_H_
