#include <cuda_runtime_api.h>

#include "tests/cuda_on_cpu/runtime.h"

using lockstep::cuda_on_cpu::Call;
using lockstep::cuda_on_cpu::Capture;
using lockstep::cuda_on_cpu::Completion;
using lockstep::cuda_on_cpu::Runtime;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  Call call("cudaStreamCreateWithFlags");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (stream == nullptr || flags > cudaStreamNonBlocking) {
    return call.End(cudaErrorInvalidValue);
  }
  *stream = call.runtime().MakeStream(/*legacy=*/false);
  return call.End(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Call call("cudaStreamDestroy");
  Runtime& runtime = call.runtime();
  if (stream == nullptr || runtime.Find(stream) == nullptr) {
    return call.End(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr) {
    return call.End(cudaErrorStreamCaptureUnsupported);
  }
  runtime.Remove(stream);
  return call.End(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Call call("cudaStreamSynchronize");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(handle);
  if (stream == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    stream->capture->valid = false;
    return call.End(cudaErrorStreamCaptureUnsupported);
  }
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  const Completion* done = stream->thread.PushPoint();
  call.Unlock();
  done->Wait();
  return call.End(runtime.lost());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle,
                                cudaEvent_t handle_of_event, unsigned flags) {
  Call call("cudaStreamWaitEvent");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(handle);
  CUevent_st* event = runtime.Find(handle_of_event);
  if (stream == nullptr || event == nullptr) {
    return call.End(cudaErrorInvalidResourceHandle);
  }
  if (flags != 0) return call.End(cudaErrorInvalidValue);
  Capture* capture = stream->capture;
  if (event->capture != nullptr) {
    // The stream takes part from now on; nodes of a graph keep their order.
    if (capture != nullptr && capture != event->capture) {
      return call.End(cudaErrorStreamCaptureMerge);
    }
    if (stream->legacy) return call.End(cudaErrorStreamCaptureImplicit);
    if (capture == nullptr) {
      stream->capture = event->capture;
      stream->capture->streams.insert(stream);
      stream->capture->unjoined.insert(stream);
    } else if (stream == capture->origin) {
      capture->unjoined.erase(event->stream);
    }
    return call.End(cudaSuccess);
  }
  if (capture != nullptr) {
    if (event->point == nullptr) return call.End(cudaSuccess);
    capture->valid = false;
    return call.End(cudaErrorStreamCaptureIsolation);
  }
  if (event->point != nullptr) stream->thread.PushWait(event->point);
  return call.End(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  Call call("cudaEventCreateWithFlags");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (event == nullptr ||
      (flags != cudaEventDefault && flags != cudaEventDisableTiming)) {
    return call.End(cudaErrorInvalidValue);
  }
  *event = call.runtime().MakeEvent();
  return call.End(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Call call("cudaEventDestroy");
  Runtime& runtime = call.runtime();
  if (runtime.Find(event) == nullptr) {
    return call.End(cudaErrorInvalidResourceHandle);
  }
  runtime.Remove(event);
  return call.End(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t handle_of_stream) {
  Call call("cudaEventRecord");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUevent_st* event = runtime.Find(handle);
  CUstream_st* stream = runtime.Find(handle_of_stream);
  if (event == nullptr || stream == nullptr ||
      event->device != stream->device) {
    return call.End(cudaErrorInvalidResourceHandle);
  }
  event->capture = stream->capture;
  event->stream = stream;
  event->point =
      stream->capture == nullptr ? stream->thread.PushPoint() : nullptr;
  return call.End(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Call call("cudaEventQuery");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUevent_st* event = runtime.Find(handle);
  if (event == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return call.End(cudaErrorCapturedEvent);
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  const bool done = event->point == nullptr || event->point->IsSet();
  return call.End(done ? runtime.lost() : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Call call("cudaEventSynchronize");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUevent_st* event = runtime.Find(handle);
  if (event == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return call.End(cudaErrorCapturedEvent);
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  const Completion* point = event->point;
  call.Unlock();
  if (point != nullptr) point->Wait();
  return call.End(runtime.lost());
}
