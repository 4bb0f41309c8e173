// Captures: the part of Runtime that makes graphs.

#include <algorithm>
#include <utility>

#include "tests/cuda_on_cpu/runtime.h"

namespace lockstep::cuda_on_cpu {

cudaError_t Runtime::BeginCapture(CUstream_st& stream,
                                  cudaStreamCaptureMode mode) {
  if (stream.legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture != nullptr) return cudaErrorIllegalState;
  auto capture = std::make_unique<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams.insert(&stream);
  stream.capture = capture.get();
  captures_.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t Runtime::EndCapture(CUstream_st& stream, cudaGraph_t* graph) {
  *graph = nullptr;
  Capture* capture = stream.capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->origin != &stream) return cudaErrorStreamCaptureUnmatched;
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  for (CUstream_st* member : capture->streams) member->capture = nullptr;
  for (cudaEvent_t event : events_) {
    if (event->capture == capture) event->capture = nullptr;
  }
  cudaError_t error = cudaSuccess;
  if (!capture->valid) {
    error = cudaErrorStreamCaptureInvalidated;
  } else if (!capture->unjoined.empty()) {
    error = cudaErrorStreamCaptureUnjoined;
  } else {
    *graph = new CUgraph_st(std::move(capture->graph));
    graphs_.insert(*graph);
  }
  std::erase_if(captures_, [&](const auto& c) { return c.get() == capture; });
  return error;
}

cudaError_t Runtime::MayCallUnsafe() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && own)) {
      capture->valid = false;
      error = cudaErrorStreamCaptureUnsupported;
    }
  }
  return error;
}

cudaError_t Runtime::Queue(CUstream_st& stream, StreamThread::Run run) {
  Capture* capture = stream.capture;
  if (capture == nullptr) {
    stream.thread.Push(std::move(run));
    return cudaSuccess;
  }
  if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
  if (capture->origin != &stream) capture->unjoined.insert(&stream);
  capture->graph.nodes.push_back(std::move(run));
  return cudaSuccess;
}

}  // namespace lockstep::cuda_on_cpu
