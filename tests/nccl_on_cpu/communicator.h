#ifndef LOCKSTEP_TESTS_NCCL_ON_CPU_COMMUNICATOR_H_
#define LOCKSTEP_TESTS_NCCL_ON_CPU_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strategy/nccl/nccl_api.h"
#include "tests/nccl_on_cpu/control.h"
#include "tests/nccl_on_cpu/world.h"

namespace lockstep::nccl_on_cpu {

// The members that have come with one unique id.
struct Clique {
  explicit Clique(int of) : members(of), world(of) {}

  const int members;
  std::set<int> ranks;
  std::set<int> devices;
  strategy::NcclResult error = strategy::kNcclSuccess;
  World world;
};

}  // namespace lockstep::nccl_on_cpu

// A communicator, as callers of the host see it.
struct lockstep::strategy::NcclCommHandle {
  int rank = 0;
  int device = 0;
  std::shared_ptr<lockstep::nccl_on_cpu::Clique> clique;
  NcclResult error = kNcclSuccess;
  bool started = false;
  bool finalized = false;
  int polls = 0;                  // that return kNcclInProgress yet
  std::function<void()> pending;  // gives work to the stream
  uint64_t sequence = 0;          // of operations of all members
  bool hangs = false;
  const std::shared_ptr<std::atomic<bool>> aborted =
      std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<std::atomic<int>> running =
      std::make_shared<std::atomic<int>>(0);
};

namespace lockstep::nccl_on_cpu {

using strategy::NcclComm;
using strategy::NcclResult;

// Library is the state of NCCL in this process.
class Library {
 public:
  static Library& Get();

  std::mutex& mutex() { return mutex_; }

  // All others are called with the lock held.
  void Configure(const Settings& settings);
  const Settings& settings() const { return settings_; }
  // The error that a call must fail with.
  NcclResult Note(const std::string& call, int rank);
  void SetFault(const Fault& fault);
  void SetHang(int rank);

  bool IsLive(NcclComm comm) const { return live_.count(comm) != 0; }
  int live() const { return static_cast<int>(live_.size()); }
  int aborted() const { return aborted_; }
  NcclComm Make(const std::string& id, int members, int rank, int device);
  void Remove(NcclComm comm, bool is_abort);

  // Checks that a member may make the call now.
  NcclResult Begin(const char* call, NcclComm comm);
  // The call is under way, and gives work to a stream once it is settled.
  NcclResult Launch(NcclComm comm, std::function<void()> work);
  // The state of the communicator, after one more poll.
  NcclResult Poll(NcclComm comm);

 private:
  std::mutex mutex_;
  Settings settings_;
  Fault fault_;
  bool fault_set_ = false;
  int64_t fault_calls_ = 0;
  int hangs_ = kAnyRank - 1;  // rank; this: none
  int aborted_ = 0;
  std::map<std::string, std::weak_ptr<Clique>> cliques_;
  std::set<NcclComm> live_;
};

void ClearMistake();

}  // namespace lockstep::nccl_on_cpu

#endif  // LOCKSTEP_TESTS_NCCL_ON_CPU_COMMUNICATOR_H_
