#include "worker/compute/cuda/cuda_recording.h"

#include "worker/compute/cuda/cuda_status.h"

namespace lockstep::worker::cuda {
namespace {

constexpr char kRecord[] = "Record";

// Destroying a graph that still runs is legal: CUDA frees it when it has ended.
class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaGraphExec_t graph, cudaStream_t stream,
                const std::string& device)
      : graph_(graph), stream_(stream), device_(device) {}
  ~CudaRecording() override { Ignore(cudaGraphExecDestroy(graph_)); }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  absl::Status Replay() override {
    return ToStatus(cudaGraphLaunch(graph_, stream_),
                    {"cudaGraphLaunch", "Replay", device_});
  }

 private:
  const cudaGraphExec_t graph_;
  const cudaStream_t stream_;
  const std::string& device_;
};

}  // namespace

absl::Status BeginCapture(cudaStream_t stream, const std::string& device) {
  const cudaError_t error =
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  cudaGetLastError();  // or the next launch would return it
  return ToStatus(error, {"cudaStreamBeginCapture", kRecord, device});
}

absl::StatusOr<std::unique_ptr<Recording>> EndCapture(
    cudaStream_t stream, const std::string& device) {
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  cudaGraphExec_t executable = nullptr;
  cudaError_t made = cudaSuccess;
  if (ended == cudaSuccess) {
    made = cudaGraphInstantiateWithFlags(&executable, graph, 0);
  }
  if (graph != nullptr) Ignore(cudaGraphDestroy(graph));
  cudaGetLastError();  // of what could not be captured, too
  if (absl::Status s =
          ToStatus(ended, {"cudaStreamEndCapture", kRecord, device});
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          ToStatus(made, {"cudaGraphInstantiateWithFlags", kRecord, device});
      !s.ok()) {
    return s;
  }
  return std::make_unique<CudaRecording>(executable, stream, device);
}

}  // namespace lockstep::worker::cuda
