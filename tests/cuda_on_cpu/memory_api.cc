#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cuda_on_cpu/runtime.h"

using lockstep::cuda_on_cpu::AddressSpace;
using lockstep::cuda_on_cpu::Call;
using lockstep::cuda_on_cpu::Completion;
using lockstep::cuda_on_cpu::Delays;
using lockstep::cuda_on_cpu::Runtime;

namespace {

constexpr uintptr_t kPage = 4096;

uintptr_t AddressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

// Whether a page of these bytes is pinned: memory is pinned by the page.
bool SharesPinnedPage(const Runtime& runtime, const void* data, size_t bytes) {
  const uintptr_t first = AddressOf(data) / kPage;
  const uintptr_t last = (AddressOf(data) + bytes - 1) / kPage;
  for (const auto& [begin, size] : const_cast<Runtime&>(runtime).pinned()) {
    if (begin / kPage <= last && first <= (begin + size - 1) / kPage) {
      return true;
    }
  }
  return false;
}

// Copies in two halves with a wait between them, each as late as that of a
// device; what is not yet copied is no number.
void CopyLate(void* to, const void* from, size_t bytes, Delays& delays) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  const size_t half = bytes / 2;
  std::memset(out + half, 0xff, bytes - half);
  std::memcpy(out, in, half);
  delays.Wait();
  std::memcpy(out + half, in + half, bytes - half);
}

}  // namespace

cudaError_t cudaMalloc(void** data, size_t bytes) {
  Call call("cudaMalloc");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (data == nullptr) return call.End(cudaErrorInvalidValue);
  Runtime& runtime = call.runtime();
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  return call.End(runtime.memory().Allocate(runtime.device(), bytes, data));
}

// Waits for all that the thread's device does, which may be another one than
// that of the memory: CUDA's documents promise no more.
cudaError_t cudaFree(void* data) {
  Call call("cudaFree");
  Runtime& runtime = call.runtime();
  if (data == nullptr) return call.End(cudaSuccess);
  if (!runtime.memory().Holds(data, 0)) return call.End(cudaErrorInvalidValue);
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  std::vector<Completion*> points;
  for (CUstream_st* stream : runtime.StreamsOf(runtime.device())) {
    points.push_back(stream->thread.PushPoint());
  }
  for (const Completion* point : points) point->Wait();
  return call.End(runtime.memory().Free(data));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Call call("cudaMemGetInfo");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (free == nullptr || total == nullptr) {
    return call.End(cudaErrorInvalidValue);
  }
  Runtime& runtime = call.runtime();
  *total = runtime.memory().bytes();
  *free = *total - runtime.memory().allocated(runtime.device());
  return call.End(cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* data) {
  Call call("cudaPointerGetAttributes");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  const int device = call.runtime().memory().DeviceOf(data);
  if (attributes == nullptr || device < 0) {
    return call.End(cudaErrorInvalidValue);
  }
  *attributes = {cudaMemoryTypeDevice, device, const_cast<void*>(data),
                 nullptr};
  return call.End(cudaSuccess);
}

cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned flags) {
  Call call("cudaHostRegister");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  if (data == nullptr || bytes == 0 || flags != cudaHostRegisterDefault ||
      AddressSpace::Get().IsDevice(data)) {
    return call.End(cudaErrorInvalidValue);
  }
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  if (SharesPinnedPage(runtime, data, bytes)) {
    return call.End(cudaErrorHostMemoryAlreadyRegistered);
  }
  runtime.pinned()[AddressOf(data)] = bytes;
  return call.End(cudaSuccess);
}

cudaError_t cudaHostUnregister(void* data) {
  Call call("cudaHostUnregister");
  Runtime& runtime = call.runtime();
  if (runtime.pinned().erase(AddressOf(data)) == 0) {
    return call.End(cudaErrorHostMemoryNotRegistered);
  }
  return call.End(runtime.MayCallUnsafe());
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t handle) {
  Call call("cudaMemcpyAsync");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(handle);
  if (stream == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return call.End(cudaErrorInvalidMemcpyDirection);
  }
  if (bytes == 0) return call.End(cudaSuccess);
  const AddressSpace& space = AddressSpace::Get();
  const bool to_device = space.IsDevice(to);
  const bool from_device = space.IsDevice(from);
  const int actual = (from_device ? 2 : 0) + (to_device ? 1 : 0);
  if (to == nullptr || from == nullptr ||
      (to_device && !runtime.memory().Holds(to, bytes)) ||
      (from_device && !runtime.memory().Holds(from, bytes))) {
    return call.End(cudaErrorInvalidValue);
  }
  if (kind != cudaMemcpyDefault && kind != actual) {
    return call.End(cudaErrorInvalidValue);
  }
  const bool pageable_to = !to_device && !runtime.IsPinned(to, bytes);
  const bool pageable_from = !from_device && !runtime.IsPinned(from, bytes);
  void* out = space.Inside(to);
  if (pageable_to || pageable_from) {
    if (stream->capture != nullptr) {
      stream->capture->valid = false;
      return call.End(cudaErrorStreamCaptureUnsupported);
    }
  }
  if (pageable_from) {
    // Read now, written when the stream is there.
    const auto* bytes_of = static_cast<const char*>(from);
    std::vector<char> staged(bytes_of, bytes_of + bytes);
    runtime.Queue(*stream, [out, staged](Delays& delays) {
      CopyLate(out, staged.data(), staged.size(), delays);
    });
  } else {
    const void* in = space.Inside(from);
    const cudaError_t error = runtime.Queue(
        *stream,
        [out, in, bytes](Delays& delays) { CopyLate(out, in, bytes, delays); });
    if (error != cudaSuccess) return call.End(error);
  }
  if (!pageable_to) return call.End(cudaSuccess);
  const Completion* done = stream->thread.PushPoint();
  call.Unlock();
  done->Wait();
  return call.End(runtime.lost());
}

cudaError_t cudaMemset2DAsync(void* data, size_t pitch, int value, size_t width,
                              size_t height, cudaStream_t handle) {
  Call call("cudaMemset2DAsync");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  CUstream_st* stream = runtime.Find(handle);
  if (stream == nullptr) return call.End(cudaErrorInvalidResourceHandle);
  if (width == 0 || height == 0) return call.End(cudaSuccess);
  const size_t bytes = pitch * (height - 1) + width;
  if (width > pitch || !runtime.memory().Holds(data, bytes)) {
    return call.End(cudaErrorInvalidValue);
  }
  auto* out = static_cast<char*>(AddressSpace::Get().Inside(data));
  return call.End(
      runtime.Queue(*stream, [out, pitch, value, width, height](Delays&) {
        for (size_t row = 0; row < height; ++row) {
          std::memset(out + row * pitch, value, width);
        }
      }));
}
