#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "tests/cuda_on_cpu/launch.h"
#include "tests/cuda_on_cpu/runtime.h"

using lockstep::cuda_on_cpu::Call;
using lockstep::cuda_on_cpu::Delays;
using lockstep::cuda_on_cpu::Runtime;
using lockstep::cuda_on_cpu::StreamThread;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle,
                                   cudaStreamCaptureMode mode) {
  Call call("cudaStreamBeginCapture");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  CUstream_st* stream = call.runtime().Find(handle);
  if (stream == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (mode < cudaStreamCaptureModeGlobal ||
      mode > cudaStreamCaptureModeRelaxed) {
    return call.End(cudaErrorInvalidValue);
  }
  return call.End(call.runtime().BeginCapture(*stream, mode));
}

// Ends the capture even where the call must fail.
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  Call call("cudaStreamEndCapture");
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(handle);
  if (stream == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (graph == nullptr) return call.End(cudaErrorInvalidValue);
  const cudaError_t error = runtime.EndCapture(*stream, graph);
  if (call.refusal() != cudaSuccess && *graph != nullptr) {
    runtime.graphs().erase(*graph);
    delete std::exchange(*graph, nullptr);
  }
  return call.End(error);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
  Call call("cudaGraphInstantiateWithFlags");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  if (executable == nullptr || flags != 0 ||
      runtime.graphs().count(graph) == 0) {
    return call.End(cudaErrorInvalidValue);
  }
  *executable = new CUgraphExec_st{std::make_shared<const CUgraph_st>(*graph)};
  runtime.executables().insert(*executable);
  return call.End(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Call call("cudaGraphDestroy");
  if (call.runtime().graphs().erase(graph) == 0) {
    return call.End(cudaErrorInvalidValue);
  }
  delete graph;
  return call.End(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  Call call("cudaGraphExecDestroy");
  if (call.runtime().executables().erase(executable) == 0) {
    return call.End(cudaErrorInvalidValue);
  }
  delete executable;
  return call.End(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  Call call("cudaGraphLaunch");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(handle);
  if (stream == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (runtime.executables().count(executable) == 0) {
    return call.End(cudaErrorInvalidValue);
  }
  return call.End(
      runtime.Queue(*stream, [graph = executable->graph](Delays& delays) {
        for (const StreamThread::Run& node : graph->nodes) {
          node(delays);
          delays.Wait();
        }
      }));
}

namespace lockstep::cuda_on_cpu {
namespace {

// The limits of all devices that CUDA 13 knows.
bool IsLaunchable(const GridShape& shape) {
  constexpr uint64_t kMaxThreads = 1024;
  return shape.grid.count() > 0 && shape.block.count() > 0 &&
         shape.grid.x <= 0x7fffffff && shape.grid.y <= 0xffff &&
         shape.grid.z <= 0xffff && shape.block.z <= 64 &&
         shape.block.count() <= kMaxThreads;
}

}  // namespace

void QueueKernel(const LaunchShape& shape, bool reachable,
                 std::function<void()> body) {
  Call call("cudaLaunchKernel");
  if (call.refusal() != cudaSuccess) {
    call.End(cudaSuccess);
    return;
  }
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(shape.stream);
  // A kernel must be launched on a stream of the thread's device.
  if (stream == nullptr || stream->device != runtime.device()) {
    call.End(cudaErrorInvalidResourceHandle);
    return;
  }
  if (!IsLaunchable(shape.grid)) {
    call.End(cudaErrorInvalidConfiguration);
    return;
  }
  if (shape.grid.shared_bytes > runtime.MaxShared(shape.kernel)) {
    call.End(cudaErrorInvalidValue);
    return;
  }
  DeviceState& state = runtime.state(stream->device);
  call.End(runtime.Queue(*stream, [shape, reachable, &state,
                                   body = std::move(body)](Delays& delays) {
    if (!reachable) {
      std::fprintf(stderr,
                   "cuda_on_cpu: kernel %s is given memory of the host\n",
                   shape.grid.name);
      state.lost = cudaErrorIllegalAddress;
      return;
    }
    RunGrid(shape.grid, delays.Random(), body);
  }));
}

}  // namespace lockstep::cuda_on_cpu
