#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_RUNTIME_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_RUNTIME_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/stream.h"

struct CUgraph_st {
  std::vector<lockstep::cuda_on_cpu::StreamThread::Run> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
};

namespace lockstep::cuda_on_cpu {

// A capture that is under way, and the streams that take part in it.
struct Capture {
  cudaStreamCaptureMode mode;
  std::thread::id thread;  // that began it
  CUstream_st* origin;
  bool valid = true;
  CUgraph_st graph;
  std::set<CUstream_st*> streams;
  // Streams with nodes that the origin does not wait for.
  std::set<CUstream_st*> unjoined;
};

}  // namespace lockstep::cuda_on_cpu

struct CUstream_st {
  CUstream_st(int on, lockstep::cuda_on_cpu::DeviceState& state, uint64_t seed,
              bool is_default)
      : device(on), legacy(is_default), thread(state, seed) {}

  const int device;
  const bool legacy;
  lockstep::cuda_on_cpu::StreamThread thread;
  lockstep::cuda_on_cpu::Capture* capture = nullptr;
};

struct CUevent_st {
  int device = 0;
  lockstep::cuda_on_cpu::Completion* point = nullptr;  // of the last record
  lockstep::cuda_on_cpu::Capture* capture = nullptr;   // that it is part of
  CUstream_st* stream = nullptr;                       // of that record
};

namespace lockstep::cuda_on_cpu {

// Runtime is all that CUDA knows in this process: devices, memory, streams and
// so on. Calls() below are under its lock, the threads of streams are not.
class Runtime {
 public:
  static Runtime& Get();

  std::mutex& mutex() { return mutex_; }

  void Configure(const Settings& settings);
  const Settings& settings() const { return settings_; }

  // Notes a call, and returns the error that it must fail with.
  cudaError_t Note(const char* call);
  void SetFault(const Fault& fault);
  bool fault_has_happened() const { return fault_happened_; }
  std::vector<const char*> TakeCalls() { return std::exchange(calls_, {}); }

  // This thread's, as cudaSetDevice() set it.
  int& device();
  DeviceState& state(int device) { return *states_[device]; }
  cudaError_t lost() {
    return static_cast<cudaError_t>(
        states_[device()]->lost.load(std::memory_order_relaxed));
  }
  void Lose(cudaError_t error) { states_[device()]->lost = error; }

  // Dynamic shared memory that a kernel may have: 48 KiB, unless the program
  // allowed it more.
  size_t MaxShared(const void* kernel) const {
    const auto found = max_shared_.find(kernel);
    return found == max_shared_.end() ? size_t{48} << 10 : found->second;
  }
  void SetMaxShared(const void* kernel, size_t bytes) {
    max_shared_[kernel] = bytes;
  }

  DeviceMemory& memory() { return memory_; }
  // Memory that is pinned, by its first byte.
  std::map<uintptr_t, size_t>& pinned() { return pinned_; }
  // True for all memory if the devices are coherent.
  bool IsPinned(const void* data, size_t bytes) const;

  // Null: no such stream. A null handle is the device's default stream.
  CUstream_st* Find(cudaStream_t stream);
  CUevent_st* Find(cudaEvent_t event) {
    return events_.count(event) == 0 ? nullptr : event;
  }
  cudaStream_t MakeStream(bool legacy);
  cudaEvent_t MakeEvent();
  void Remove(cudaStream_t stream);
  void Remove(cudaEvent_t event);
  std::vector<CUstream_st*> StreamsOf(int device) const;

  cudaError_t BeginCapture(CUstream_st& stream, cudaStreamCaptureMode mode);
  cudaError_t EndCapture(CUstream_st& stream, cudaGraph_t* graph);
  // Whether this thread may make a call that a capture does not see; if not,
  // the capture is invalid from now on.
  cudaError_t MayCallUnsafe();
  // Queues work on a stream, or adds it to the capture that the stream is in.
  cudaError_t Queue(CUstream_st& stream, StreamThread::Run run);

  std::set<cudaGraph_t>& graphs() { return graphs_; }
  std::set<cudaGraphExec_t>& executables() { return executables_; }

 private:
  Runtime();

  std::mutex mutex_;
  Settings settings_;
  Fault fault_;
  int64_t fault_calls_ = 0;  // that might have been its
  bool fault_set_ = false;
  bool fault_happened_ = false;
  std::vector<const char*> calls_;
  std::deque<std::unique_ptr<DeviceState>> all_states_;  // also of before
  std::vector<DeviceState*> states_;
  std::mt19937_64 random_;
  DeviceMemory memory_;
  std::map<uintptr_t, size_t> pinned_;
  std::set<cudaStream_t> streams_;
  std::vector<cudaStream_t> default_streams_;
  std::set<cudaEvent_t> events_;
  std::vector<std::unique_ptr<Capture>> captures_;
  std::set<cudaGraph_t> graphs_;
  std::set<cudaGraphExec_t> executables_;
  std::map<const void*, size_t> max_shared_;  // by kernel
};

// Call is one call of a function of CUDA: it holds the lock of the runtime, and
// its error, if any, is the thread's last one.
class Call {
 public:
  explicit Call(const char* name) : lock_(Runtime::Get().mutex()) {
    injected_ = Runtime::Get().Note(name);
  }

  // The error that the call must fail with, whatever it is given: that of a
  // lost device, or of a fault.
  cudaError_t refusal() const { return injected_; }
  Runtime& runtime() { return Runtime::Get(); }
  // For what waits.
  void Unlock() { lock_.unlock(); }

  // Returns `error`, or the refusal.
  cudaError_t End(cudaError_t error);

 private:
  std::unique_lock<std::mutex> lock_;
  cudaError_t injected_;
};

// True for errors after which the device is of no use to the process.
bool LosesDevice(cudaError_t error);

// The thread's last error.
cudaError_t& LastError();

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_RUNTIME_H_
