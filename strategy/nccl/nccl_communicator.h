#ifndef LOCKSTEP_STRATEGY_NCCL_NCCL_COMMUNICATOR_H_
#define LOCKSTEP_STRATEGY_NCCL_NCCL_COMMUNICATOR_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "strategy/nccl/nccl_api.h"

namespace lockstep::strategy {

// NcclCommunicator moves bytes between the members of a group by way of their
// GPUs: from host memory to its GPU, by NCCL to the other GPUs, and from there
// to their hosts. No call waits longer than its timeout.
//
// Threads: one call at a time, from any thread; the thread's current CUDA
//          device is the same afterwards.
class NcclCommunicator {
 public:
  struct Options {
    int device = 0;
    int rank = 0;
    int members = 1;
    size_t round_bytes = size_t{64} << 20;  // bytes of a member per round
    absl::Duration start_timeout = absl::Minutes(5);  // of Make()
    absl::Duration timeout = absl::Minutes(5);        // of Gather()
    // How long a call of NCCL may go on after a member has left: a member that
    // has all bytes may leave before the others have them.
    absl::Duration grace = absl::Seconds(2);
    // Must return OK while no member is known to have left. Must not be empty.
    std::function<absl::Status()> ended;
  };

  // The argument of Gather(). `bytes` must be equal at all members.
  struct Transfer {
    std::vector<size_t> bytes;  // of each member, by rank
    // The memory from which this member's bytes are sent, and into which those
    // of the others are received, by rank (empty at this member's own rank).
    std::vector<absl::Span<const std::byte>> mine;
    std::vector<std::vector<absl::Span<std::byte>>> others;
  };

  // Returns when all members have called it with the same `id`.
  //
  //   kAborted           a member has left
  //   kUnavailable       a member does not answer
  //   kDeadlineExceeded  not all members called it in time
  //   others             as ToStatus()
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Make(
      const CudaFunctions& cuda, const NcclFunctions& nccl,
      const NcclUniqueId& id, const Options& options);
  // Waits at most Options::grace for NCCL to end.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Sends the bytes of all members to all. After an error the communicator must
  // only be destroyed.
  //
  //   kResourceExhausted  the GPU has too little memory
  //   others              as Make()
  absl::Status Gather(const Transfer& transfer);
  // Sets the timeout of Gather() from now on; absent: that of the options.
  void SetTimeout(std::optional<absl::Duration> timeout) { timeout_ = timeout; }

 private:
  // The part of a transfer that is moved at once, and its place in the buffer.
  struct Round {
    size_t begin = 0;            // in the bytes of each member
    std::vector<size_t> bytes;   // of each member, by rank
    std::vector<size_t> places;  // multiples of 16
    bool equal = true;           // all members have as many bytes
  };

  NcclCommunicator(const CudaFunctions& cuda, const NcclFunctions& nccl,
                   const Options& options)
      : cuda_(cuda), nccl_(nccl), options_(options) {}

  absl::Status Start(const NcclUniqueId& id);
  absl::Status GatherRounds(const Transfer& transfer);
  Round RoundAt(size_t begin, const Transfer& transfer) const;
  absl::Status Reserve(size_t bytes);
  absl::Status Upload(const Round& round, const Transfer& transfer);
  absl::Status Move(const Round& round);
  absl::Status SendAndReceive(const Round& round);
  absl::Status Download(const Round& round, const Transfer& transfer);

  // Sets the deadline of the current call to `timeout` from now.
  void SetDeadline(absl::Duration timeout);
  // Waits until done() returns true. Errors: of `done`; kAborted and
  // kDeadlineExceeded as Make().
  absl::Status Await(const std::string& call,
                     absl::FunctionRef<absl::StatusOr<bool>()> done);
  // Waits until NCCL has queued the work of a call that returned `result`:
  // communicators are non-blocking.
  absl::Status Settle(const std::string& call, NcclResult result);
  absl::Status AwaitStream(const std::string& call);
  absl::Status Check(const std::string& call, CudaResult result);
  void Abort();
  void Close();

  std::byte* At(size_t place) const {
    return static_cast<std::byte*>(buffer_) + place;
  }

  const CudaFunctions cuda_;
  const NcclFunctions nccl_;
  const Options options_;

  NcclComm comm_ = nullptr;
  CudaStream stream_ = nullptr;
  CudaEvent event_ = nullptr;
  void* buffer_ = nullptr;  // of the device
  size_t buffer_bytes_ = 0;
  std::optional<absl::Duration> timeout_;  // of Gather()
  absl::Duration patience_;  // the timeout of the current call, for messages
  std::chrono::steady_clock::time_point deadline_;
  // When a member was first known to have left.
  std::optional<std::chrono::steady_clock::time_point> left_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_NCCL_COMMUNICATOR_H_
