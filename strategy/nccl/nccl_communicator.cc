#include "strategy/nccl/nccl_communicator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/steady_deadline.h"
#include "strategy/nccl/nccl_library.h"
#include "strategy/nccl/payload.h"

namespace lockstep::strategy {
namespace {

// Polls before the first pause: most calls end within them.
constexpr int kEagerPolls = 200;
constexpr auto kPause = std::chrono::microseconds(50);
// The alignment, in bytes, at which NCCL is fast.
constexpr size_t kAlignment = 16;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Makes `device` the current device of this thread for the length of a scope.
class DeviceScope {
 public:
  DeviceScope(const CudaFunctions& cuda, int device)
      : cuda_(cuda),
        known_(cuda.get_device(&before_) == kCudaSuccess),
        result_(cuda.set_device(device)) {}
  ~DeviceScope() {
    if (known_) cuda_.set_device(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  CudaResult result() const { return result_; }

 private:
  // Initialized in this order: the device is read before it is changed.
  const CudaFunctions& cuda_;
  int before_ = 0;
  const bool known_;
  const CudaResult result_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Make(
    const CudaFunctions& cuda, const NcclFunctions& nccl,
    const NcclUniqueId& id, const Options& options) {
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(cuda, nccl, options));
  const DeviceScope scope(cuda, options.device);
  LOCKSTEP_RETURN_IF_ERROR(made->Check("cudaSetDevice", scope.result()));
  const absl::Status started = made->Start(id);
  if (!started.ok()) {
    made->Abort();
    return started;
  }
  return made;
}

absl::Status NcclCommunicator::Start(const NcclUniqueId& id) {
  SetDeadline(options_.start_timeout);
  LOCKSTEP_RETURN_IF_ERROR(
      Check("cudaStreamCreateWithFlags",
            cuda_.stream_create_with_flags(&stream_, kCudaStreamNonBlocking)));
  LOCKSTEP_RETURN_IF_ERROR(
      Check("cudaEventCreateWithFlags",
            cuda_.event_create_with_flags(&event_, kCudaEventDisableTiming)));
  NcclConfig config;
  const NcclResult result = nccl_.comm_init_rank_config(
      &comm_, options_.members, id, options_.rank, &config);
  return Settle("ncclCommInitRankConfig", result);
}

NcclCommunicator::~NcclCommunicator() {
  const DeviceScope scope(cuda_, options_.device);
  Close();
  // Errors are ignored: there is nothing left that could be done.
  if (buffer_ != nullptr) cuda_.free(buffer_);
  if (event_ != nullptr) cuda_.event_destroy(event_);
  if (stream_ != nullptr) cuda_.stream_destroy(stream_);
}

void NcclCommunicator::Close() {
  if (comm_ == nullptr) return;
  SetDeadline(options_.grace);
  const absl::Status ended =
      Settle("ncclCommFinalize", nccl_.comm_finalize(comm_));
  if (!ended.ok()) return Abort();
  nccl_.comm_destroy(comm_);
  comm_ = nullptr;
}

// ncclCommAbort() frees the communicator, as ncclCommDestroy() does.
void NcclCommunicator::Abort() {
  if (comm_ == nullptr) return;
  nccl_.comm_abort(comm_);
  comm_ = nullptr;
}

absl::Status NcclCommunicator::Gather(const Transfer& transfer) {
  SetDeadline(timeout_.value_or(options_.timeout));
  const DeviceScope scope(cuda_, options_.device);
  absl::Status moved = Check("cudaSetDevice", scope.result());
  if (moved.ok() && comm_ == nullptr) {
    moved = absl::AbortedError("NCCL has ended after an error");
  }
  if (moved.ok()) moved = GatherRounds(transfer);
  if (moved.ok()) return moved;
  Abort();
  // Copies that are under way must not outlive the caller's memory. They end,
  // because no work of NCCL runs any more.
  if (scope.result() == kCudaSuccess) cuda_.stream_synchronize(stream_);
  return moved;
}

absl::Status NcclCommunicator::GatherRounds(const Transfer& transfer) {
  // All members know the bytes of all, so all take the same number of rounds.
  const size_t most =
      *std::max_element(transfer.bytes.begin(), transfer.bytes.end());
  for (size_t at = 0; at < most; at += options_.round_bytes) {
    const Round round = RoundAt(at, transfer);
    LOCKSTEP_RETURN_IF_ERROR(
        Reserve(round.places.back() + Aligned(round.bytes.back())));
    LOCKSTEP_RETURN_IF_ERROR(Upload(round, transfer));
    LOCKSTEP_RETURN_IF_ERROR(Move(round));
    LOCKSTEP_RETURN_IF_ERROR(Download(round, transfer));
  }
  return absl::OkStatus();
}

NcclCommunicator::Round NcclCommunicator::RoundAt(
    size_t begin, const Transfer& transfer) const {
  Round round;
  round.begin = begin;
  size_t place = 0;
  for (const size_t bytes : transfer.bytes) {
    round.bytes.push_back(
        std::min(options_.round_bytes, bytes - std::min(bytes, begin)));
    round.places.push_back(place);
    round.equal = round.equal && round.bytes.back() == round.bytes.front();
    place += Aligned(round.bytes.back());
  }
  return round;
}

absl::Status NcclCommunicator::Reserve(size_t bytes) {
  if (bytes <= buffer_bytes_) return absl::OkStatus();
  const CudaResult freed = cuda_.free(std::exchange(buffer_, nullptr));
  buffer_bytes_ = 0;
  LOCKSTEP_RETURN_IF_ERROR(Check("cudaFree", freed));
  LOCKSTEP_RETURN_IF_ERROR(
      Check(absl::StrCat("cudaMalloc of ", bytes, " bytes"),
            cuda_.malloc(&buffer_, bytes)));
  buffer_bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Upload(const Round& round,
                                      const Transfer& transfer) {
  const auto self = static_cast<size_t>(options_.rank);
  return ForEachPart<const std::byte>(
      transfer.mine, round.begin, round.begin + round.bytes[self],
      [&](absl::Span<const std::byte> part, size_t offset) {
        return Check(
            "cudaMemcpyAsync to the GPU",
            cuda_.memcpy_async(At(round.places[self] + offset), part.data(),
                               part.size(), kCudaHostToDevice, stream_));
      });
}

absl::Status NcclCommunicator::Move(const Round& round) {
  const auto self = static_cast<size_t>(options_.rank);
  // In place, as ncclAllGather() allows if the bytes of rank r lie at r times
  // the count: so the count is the aligned length, which is the distance of the
  // places.
  if (round.equal) {
    LOCKSTEP_RETURN_IF_ERROR(
        Settle("ncclAllGather", nccl_.all_gather(At(round.places[self]), At(0),
                                                 Aligned(round.bytes[self]),
                                                 kNcclUint8, comm_, stream_)));
    return AwaitStream("ncclAllGather");
  }
  LOCKSTEP_RETURN_IF_ERROR(SendAndReceive(round));
  return AwaitStream("ncclSend and ncclRecv");
}

absl::Status NcclCommunicator::SendAndReceive(const Round& round) {
  const auto self = static_cast<size_t>(options_.rank);
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(nccl_, "ncclGroupStart", nccl_.group_start()));
  absl::Status queued;
  for (size_t r = 0; r < round.bytes.size() && queued.ok(); ++r) {
    if (r == self) continue;
    const auto peer = static_cast<int>(r);
    // Both sides leave out a transfer of no bytes.
    if (round.bytes[self] > 0) {
      queued = ToStatus(nccl_, "ncclSend",
                        nccl_.send(At(round.places[self]), round.bytes[self],
                                   kNcclUint8, peer, comm_, stream_));
    }
    if (queued.ok() && round.bytes[r] > 0) {
      queued = ToStatus(nccl_, "ncclRecv",
                        nccl_.recv(At(round.places[r]), round.bytes[r],
                                   kNcclUint8, peer, comm_, stream_));
    }
  }
  // A group that has begun must end, also after an error.
  const NcclResult ended = nccl_.group_end();
  LOCKSTEP_RETURN_IF_ERROR(queued);
  return Settle("ncclGroupEnd", ended);
}

// Waits without a timeout: the stream has no work of NCCL any more, so the
// copies cannot wait for other members.
absl::Status NcclCommunicator::Download(const Round& round,
                                        const Transfer& transfer) {
  for (size_t r = 0; r < round.bytes.size(); ++r) {
    if (static_cast<int>(r) == options_.rank) continue;
    LOCKSTEP_RETURN_IF_ERROR(ForEachPart<std::byte>(
        transfer.others[r], round.begin, round.begin + round.bytes[r],
        [&](absl::Span<std::byte> part, size_t offset) {
          return Check(
              "cudaMemcpyAsync from the GPU",
              cuda_.memcpy_async(part.data(), At(round.places[r] + offset),
                                 part.size(), kCudaDeviceToHost, stream_));
        }));
  }
  return Check("cudaStreamSynchronize", cuda_.stream_synchronize(stream_));
}

void NcclCommunicator::SetDeadline(absl::Duration timeout) {
  patience_ = timeout;
  deadline_ = SteadyDeadline(timeout);
}

absl::Status NcclCommunicator::Await(
    const std::string& call, absl::FunctionRef<absl::StatusOr<bool>()> done) {
  for (int polls = 0;; ++polls) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return absl::OkStatus();
    if (polls < kEagerPolls) {
      std::this_thread::yield();
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    const absl::Status ended = options_.ended();
    if (!ended.ok()) {
      if (!left_.has_value()) left_ = now;
      if (now - *left_ >= absl::ToChronoNanoseconds(options_.grace)) {
        return absl::Status(ended.code(),
                            absl::StrCat(call, ": ", ended.message()));
      }
    }
    if (now >= deadline_) {
      return absl::DeadlineExceededError(absl::StrCat(
          call, " on GPU ", options_.device, " did not end within ",
          absl::FormatDuration(patience_)));
    }
    std::this_thread::sleep_for(kPause);
  }
}

absl::Status NcclCommunicator::Settle(const std::string& call,
                                      NcclResult result) {
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(nccl_, call, result));
  return Await(call, [&]() -> absl::StatusOr<bool> {
    NcclResult state = kNcclSuccess;
    LOCKSTEP_RETURN_IF_ERROR(
        ToStatus(nccl_, "ncclCommGetAsyncError",
                 nccl_.comm_get_async_error(comm_, &state)));
    LOCKSTEP_RETURN_IF_ERROR(ToStatus(nccl_, call, state));
    return state == kNcclSuccess;
  });
}

absl::Status NcclCommunicator::AwaitStream(const std::string& call) {
  LOCKSTEP_RETURN_IF_ERROR(
      Check("cudaEventRecord", cuda_.event_record(event_, stream_)));
  return Await(call, [&]() -> absl::StatusOr<bool> {
    const CudaResult result = cuda_.event_query(event_);
    if (result == kCudaSuccess) return true;
    if (result != kCudaErrorNotReady)
      return Check(absl::StrCat("cudaEventQuery after ", call), result);
    cuda_.get_last_error();  // else the thread's next launch would have it
    NcclResult state = kNcclSuccess;
    LOCKSTEP_RETURN_IF_ERROR(
        ToStatus(nccl_, "ncclCommGetAsyncError",
                 nccl_.comm_get_async_error(comm_, &state)));
    LOCKSTEP_RETURN_IF_ERROR(ToStatus(nccl_, call, state));
    return false;
  });
}

absl::Status NcclCommunicator::Check(const std::string& call,
                                     CudaResult result) {
  absl::Status status = ToStatus(cuda_, call, result);
  if (status.ok()) return status;
  cuda_.get_last_error();  // else the thread's next launch would report it
  return absl::Status(status.code(), absl::StrCat("GPU ", options_.device, ": ",
                                                  status.message()));
}

}  // namespace lockstep::strategy
