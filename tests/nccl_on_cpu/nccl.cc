// libnccl.so.2 for tests: see README.md. Its functions are those of NCCL.

#include <cuda_runtime_api.h>
#include <time.h>

#include <cstring>
#include <utility>

#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/runtime.h"
#include "tests/nccl_on_cpu/communicator.h"

using lockstep::cuda_on_cpu::AddressSpace;
using lockstep::cuda_on_cpu::Delays;
using lockstep::cuda_on_cpu::Runtime;
using lockstep::nccl_on_cpu::Library;
using lockstep::nccl_on_cpu::Message;
using lockstep::nccl_on_cpu::NoteMistake;
using lockstep::nccl_on_cpu::Part;
using lockstep::strategy::CudaStream;
using lockstep::strategy::kNcclInProgress;
using lockstep::strategy::kNcclInternalError;
using lockstep::strategy::kNcclInvalidArgument;
using lockstep::strategy::kNcclInvalidUsage;
using lockstep::strategy::kNcclSuccess;
using lockstep::strategy::kNcclUint8;
using lockstep::strategy::NcclComm;
using lockstep::strategy::NcclConfig;
using lockstep::strategy::NcclResult;
using lockstep::strategy::NcclUniqueId;

namespace {

// The sends and receives of a thread between ncclGroupStart() and
// ncclGroupEnd().
struct Group {
  int depth = 0;
  int rank = lockstep::nccl_on_cpu::kAnyRank - 1;  // of the thread's calls
  NcclComm comm = nullptr;
  CudaStream stream = nullptr;
  NcclResult error = kNcclSuccess;
  std::vector<Message> sends;
  std::vector<Message> receives;
};

Group& ThreadGroup() {
  thread_local Group group;
  return group;
}

std::byte* Inside(const void* data) {
  return AddressSpace::Get().Inside(
      static_cast<std::byte*>(const_cast<void*>(data)));
}

// Whether the memory is the device's, and the stream one of the member's.
NcclResult CheckMemory(NcclComm comm, const void* data, size_t bytes,
                       CudaStream stream) {
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  CUstream_st* const found =
      runtime.Find(reinterpret_cast<cudaStream_t>(stream));
  if (bytes > 0 && !runtime.memory().Holds(data, bytes)) {
    NoteMistake("memory that is not within one allocation of a device");
    return kNcclInvalidArgument;
  }
  if (found == nullptr || found->device != comm->device) {
    NoteMistake("a stream of another device");
    return kNcclInvalidArgument;
  }
  return kNcclSuccess;
}

// Gives work to the stream. It counts as running until it is done, or dropped
// because the device is lost.
template <typename Work>
void Queue(NcclComm comm, CudaStream stream, Work work) {
  const auto running = comm->running;
  ++*running;
  const std::shared_ptr<void> counted(nullptr,
                                      [running](void*) { --*running; });
  Part part = {comm->rank, nullptr, comm->hangs};
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  runtime.Queue(*runtime.Find(reinterpret_cast<cudaStream_t>(stream)),
                [part, work, counted, aborted = comm->aborted,
                 clique = comm->clique](Delays& delays) mutable {
                  part.aborted = aborted.get();
                  delays.Wait();
                  work(clique->world, part);
                });
}

void Sleep() {
  const timespec time = {0, 50'000};
  nanosleep(&time, nullptr);
}

// One of ncclSend() and ncclRecv().
NcclResult AddMessage(const char* call, const void* data, size_t count,
                      int type, int peer, NcclComm comm, CudaStream stream,
                      std::vector<Message> Group::*messages) {
  const std::lock_guard lock(Library::Get().mutex());
  Group& group = ThreadGroup();
  NcclResult result = Library::Get().Begin(call, comm);
  if (result == kNcclSuccess) {
    result = CheckMemory(comm, data, count, stream);
  }
  if (result == kNcclSuccess &&
      (type != kNcclUint8 || peer < 0 || peer >= comm->clique->members ||
       peer == comm->rank || group.depth == 0 ||
       (group.comm != nullptr && group.comm != comm))) {
    NoteMistake("a message that cannot be, or outside of a group");
    result = kNcclInvalidArgument;
  }
  if (result != kNcclSuccess) {
    group.error = result;
    return result;
  }
  group.comm = comm;
  group.rank = comm->rank;
  group.stream = stream;
  (group.*messages).push_back({peer, Inside(data), count});
  return kNcclSuccess;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(NcclResult result) {
  constexpr const char* kTexts[] = {
      "no error",
      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return result < 0 || result > kNcclInProgress ? "unknown result code"
                                                : kTexts[result];
}

NcclResult ncclGetVersion(int* version) {
  if (version == nullptr) return kNcclInvalidArgument;
  const std::lock_guard lock(Library::Get().mutex());
  *version = Library::Get().settings().version;
  return Library::Get().Note("ncclGetVersion", 0);
}

// All bytes count.
NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  if (id == nullptr) return kNcclInvalidArgument;
  static int made = 0;
  const std::lock_guard lock(Library::Get().mutex());
  ++made;
  for (size_t i = 0; i < sizeof(id->internal); ++i) {
    id->internal[i] = static_cast<char>(i * 37 + 11);
  }
  std::memcpy(id->internal, &made, sizeof(made));
  return Library::Get().Note("ncclGetUniqueId", 0);
}

NcclResult ncclCommInitRankConfig(NcclComm* comm, int members, NcclUniqueId id,
                                  int rank, NcclConfig* config) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return kNcclInternalError;
  const std::lock_guard lock(Library::Get().mutex());
  *comm = nullptr;
  ThreadGroup().rank = rank;
  bool whole = members > 0 && rank >= 0 && rank < members &&
               config != nullptr && config->size == sizeof(NcclConfig) &&
               config->magic == 0xcafebeef && config->version >= 21400 &&
               config->blocking == 0;
  for (size_t i = sizeof(int); i < sizeof(id.internal); ++i) {
    whole = whole && id.internal[i] == static_cast<char>(i * 37 + 11);
  }
  if (!whole) {
    NoteMistake("a communicator that cannot be");
    return kNcclInvalidArgument;
  }
  const NcclResult fault = Library::Get().Note("ncclCommInitRankConfig", rank);
  if (fault != kNcclSuccess) return fault;
  *comm = Library::Get().Make(std::string(id.internal, sizeof(id.internal)),
                              members, rank, device);
  return kNcclInProgress;
}

NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* error) {
  const std::lock_guard lock(Library::Get().mutex());
  if (error == nullptr || !Library::Get().IsLive(comm)) {
    NoteMistake("asks for the state of a communicator that does not live");
    return kNcclInvalidArgument;
  }
  *error = Library::Get().Poll(comm);
  return kNcclSuccess;
}

NcclResult ncclCommFinalize(NcclComm comm) {
  const std::lock_guard lock(Library::Get().mutex());
  const NcclResult result = Library::Get().Begin("ncclCommFinalize", comm);
  if (result != kNcclSuccess) return result;
  comm->finalized = true;
  return Library::Get().Launch(comm, [] {});
}

NcclResult ncclCommDestroy(NcclComm comm) {
  const std::lock_guard lock(Library::Get().mutex());
  if (!Library::Get().IsLive(comm) || !comm->finalized || *comm->running > 0) {
    NoteMistake("destroys a communicator that is not at its end");
    return kNcclInvalidArgument;
  }
  Library::Get().Remove(comm, /*is_abort=*/false);
  return kNcclSuccess;
}

// Returns when no work of the member runs.
NcclResult ncclCommAbort(NcclComm comm) {
  std::shared_ptr<std::atomic<int>> running;
  {
    const std::lock_guard lock(Library::Get().mutex());
    if (!Library::Get().IsLive(comm)) {
      NoteMistake("aborts a communicator that does not live");
      return kNcclInvalidArgument;
    }
    if (ThreadGroup().depth > 0) {
      NoteMistake("aborts a communicator within a group of calls");
    }
    *comm->aborted = true;
    running = comm->running;
  }
  while (*running > 0) Sleep();
  const std::lock_guard lock(Library::Get().mutex());
  Library::Get().Remove(comm, /*is_abort=*/true);
  return kNcclSuccess;
}

NcclResult ncclGroupStart() {
  const std::lock_guard lock(Library::Get().mutex());
  const NcclResult fault =
      Library::Get().Note("ncclGroupStart", ThreadGroup().rank);
  if (fault == kNcclSuccess) ++ThreadGroup().depth;
  return fault;
}

NcclResult ncclGroupEnd() {
  const std::lock_guard lock(Library::Get().mutex());
  Group& group = ThreadGroup();
  if (group.depth == 0) {
    NoteMistake("ends a group that has not begun");
    return kNcclInvalidUsage;
  }
  if (--group.depth > 0) return kNcclSuccess;
  const int rank = group.rank;
  Group ended = std::exchange(group, {});
  group.rank = rank;
  const NcclResult fault = Library::Get().Note("ncclGroupEnd", rank);
  if (fault != kNcclSuccess) return fault;
  if (ended.error != kNcclSuccess) return ended.error;
  const NcclComm comm = ended.comm;
  if (comm == nullptr) return kNcclSuccess;
  return Library::Get().Launch(comm, [comm, ended] {
    Queue(comm, ended.stream,
          [ended](lockstep::nccl_on_cpu::World& world, const Part& part) {
            world.SendAndReceive(part, ended.sends, ended.receives);
          });
  });
}

NcclResult ncclAllGather(const void* from, void* to, size_t count, int type,
                         NcclComm comm, CudaStream stream) {
  const std::lock_guard lock(Library::Get().mutex());
  NcclResult result = Library::Get().Begin("ncclAllGather", comm);
  if (result != kNcclSuccess) return result;
  if (type != kNcclUint8) return kNcclInvalidArgument;
  ThreadGroup().rank = comm->rank;
  const auto members = static_cast<size_t>(comm->clique->members);
  result = CheckMemory(comm, from, count, stream);
  if (result == kNcclSuccess) {
    result = CheckMemory(comm, to, members * count, stream);
  }
  if (result != kNcclSuccess) return result;
  const uint64_t sequence = comm->sequence++;
  return Library::Get().Launch(comm, [=] {
    Queue(comm, stream,
          [sequence, in = Inside(from), out = Inside(to), count](
              lockstep::nccl_on_cpu::World& world, const Part& part) {
            world.AllGather(part, sequence, in, out, count);
          });
  });
}

NcclResult ncclSend(const void* from, size_t count, int type, int peer,
                    NcclComm comm, CudaStream stream) {
  return AddMessage("ncclSend", from, count, type, peer, comm, stream,
                    &Group::sends);
}

NcclResult ncclRecv(void* to, size_t count, int type, int peer, NcclComm comm,
                    CudaStream stream) {
  return AddMessage("ncclRecv", to, count, type, peer, comm, stream,
                    &Group::receives);
}

}  // extern "C"
