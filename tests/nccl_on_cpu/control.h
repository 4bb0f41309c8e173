#ifndef LOCKSTEP_TESTS_NCCL_ON_CPU_CONTROL_H_
#define LOCKSTEP_TESTS_NCCL_ON_CPU_CONTROL_H_

#include <cstdint>
#include <string>

#include "strategy/nccl/nccl_api.h"

// How a test sets up the simulated NCCL of its process: see
// tests/nccl_on_cpu/README.md.
//
// Threads: safe to call from any thread.
namespace lockstep::nccl_on_cpu {

constexpr int kAnyRank = -1;

struct Settings {
  int version = 22809;
  // Calls of ncclCommGetAsyncError() that return ncclInProgress after each
  // other call.
  int polls = 2;
};

// Begins anew, without faults, hangs and mistakes. No communicator may live.
void Configure(const Settings& settings);

// A call that fails: the `number`-th from now on, from 1, of the function
// called `call` by members of rank `rank`. A fault of ncclCommGetAsyncError is
// the error that it reports.
struct Fault {
  std::string call;
  int rank = kAnyRank;
  int64_t number = 1;
  strategy::NcclResult result = strategy::kNcclInternalError;
};

// Replaces the fault of before.
void SetFault(const Fault& fault);

// Work that members of the rank give to their streams from now on never ends,
// unless it is aborted.
void SetHang(int rank);

// Communicators that have been made, and neither destroyed nor aborted.
int LiveCommunicators();

// Communicators that have been aborted since Configure().
int Aborted();

// A call that NCCL forbids without an error of its own, since Configure(): for
// example, members whose calls differ. Empty: there was none.
std::string Mistake();

}  // namespace lockstep::nccl_on_cpu

#endif  // LOCKSTEP_TESTS_NCCL_ON_CPU_CONTROL_H_
