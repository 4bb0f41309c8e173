#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

#include "tests/cuda_on_cpu/runtime.h"

using lockstep::cuda_on_cpu::Call;
using lockstep::cuda_on_cpu::Completion;
using lockstep::cuda_on_cpu::LastError;
using lockstep::cuda_on_cpu::LosesDevice;
using lockstep::cuda_on_cpu::Runtime;

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define LOCKSTEP_ERROR(error, text) \
  { error, #error, text }

constexpr ErrorText kErrors[] = {
    LOCKSTEP_ERROR(cudaSuccess, "no error"),
    LOCKSTEP_ERROR(cudaErrorInvalidValue, "invalid argument"),
    LOCKSTEP_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    LOCKSTEP_ERROR(cudaErrorInitializationError, "initialization error"),
    LOCKSTEP_ERROR(cudaErrorInvalidMemcpyDirection,
                   "invalid copy direction for memcpy"),
    LOCKSTEP_ERROR(cudaErrorInvalidConfiguration,
                   "invalid configuration argument"),
    LOCKSTEP_ERROR(cudaErrorInsufficientDriver,
                   "CUDA driver version is insufficient for CUDA runtime "
                   "version"),
    LOCKSTEP_ERROR(cudaErrorDevicesUnavailable,
                   "CUDA-capable device(s) is/are busy or unavailable"),
    LOCKSTEP_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    LOCKSTEP_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    LOCKSTEP_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    LOCKSTEP_ERROR(cudaErrorECCUncorrectable,
                   "uncorrectable ECC error encountered"),
    LOCKSTEP_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    LOCKSTEP_ERROR(cudaErrorIllegalState,
                   "the operation cannot be performed in the present state"),
    LOCKSTEP_ERROR(cudaErrorNotReady, "device not ready"),
    LOCKSTEP_ERROR(cudaErrorIllegalAddress,
                   "an illegal memory access was encountered"),
    LOCKSTEP_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    LOCKSTEP_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                   "part or all of the requested memory range is already "
                   "mapped"),
    LOCKSTEP_ERROR(cudaErrorHostMemoryNotRegistered,
                   "pointer does not correspond to a registered memory region"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureUnsupported,
                   "operation not permitted when stream is capturing"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureInvalidated,
                   "operation failed due to a previous error during capture"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureMerge,
                   "operation would result in a merge of separate capture "
                   "sequences"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureUnmatched,
                   "capture was not ended in the same stream as it began"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureUnjoined,
                   "capturing stream has unjoined work"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureIsolation,
                   "dependency created on uncaptured work in another stream"),
    LOCKSTEP_ERROR(cudaErrorCapturedEvent,
                   "operation not permitted on an event last recorded in a "
                   "capturing stream"),
    LOCKSTEP_ERROR(cudaErrorStreamCaptureWrongThread,
                   "attempt to terminate a thread-local capture sequence from "
                   "another thread"),
    LOCKSTEP_ERROR(cudaErrorUnknown, "unknown error"),
};

const ErrorText* Find(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return &known;
  }
  return nullptr;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* known = Find(error);
  return known == nullptr ? "unrecognized error code" : known->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* known = Find(error);
  return known == nullptr ? "unrecognized error code" : known->text;
}

// The error of a lost device stays.
cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  LastError() = LosesDevice(error) ? error : cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return LastError(); }

cudaError_t cudaGetDeviceCount(int* count) {
  Call call("cudaGetDeviceCount");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (count == nullptr) return call.End(cudaErrorInvalidValue);
  *count = call.runtime().settings().devices;
  return call.End(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  Call call("cudaGetDevice");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (device == nullptr) return call.End(cudaErrorInvalidValue);
  *device = call.runtime().device();
  return call.End(cudaSuccess);
}

// "0000:03:00.0" for device 3.
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  constexpr int kLength = 13;  // with the zero
  Call call("cudaDeviceGetPCIBusId");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (id == nullptr || bytes < kLength) return call.End(cudaErrorInvalidValue);
  if (device < 0 || device >= call.runtime().settings().devices) {
    return call.End(cudaErrorInvalidDevice);
  }
  std::snprintf(id, kLength, "0000:%02x:00.0", device & 0xff);
  return call.End(cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  Call call("cudaSetDevice");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (device < 0 || device >= call.runtime().settings().devices) {
    return call.End(cudaErrorInvalidDevice);
  }
  call.runtime().device() = device;
  return call.End(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Call call("cudaGetDeviceProperties");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (properties == nullptr) return call.End(cudaErrorInvalidValue);
  if (device < 0 || device >= call.runtime().settings().devices) {
    return call.End(cudaErrorInvalidDevice);
  }
  std::snprintf(properties->name, sizeof(properties->name),
                "simulated on the CPU");
  properties->totalGlobalMem = call.runtime().settings().memory;
  return call.End(cudaSuccess);
}

// Legal in a capture. 227 KiB is the limit of Hopper.
cudaError_t cudaFuncSetAttribute(const void* kernel,
                                 cudaFuncAttribute attribute, int value) {
  constexpr int kMaxShared = 227 << 10;
  Call call("cudaFuncSetAttribute");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  if (kernel == nullptr) return call.End(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > kMaxShared) {
    return call.End(cudaErrorInvalidValue);
  }
  call.runtime().SetMaxShared(kernel, static_cast<size_t>(value));
  return call.End(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize");
  if (call.refusal() != cudaSuccess) return call.End(cudaSuccess);
  Runtime& runtime = call.runtime();
  if (cudaError_t unsafe = runtime.MayCallUnsafe(); unsafe != cudaSuccess) {
    return call.End(unsafe);
  }
  std::vector<Completion*> points;
  for (CUstream_st* stream : runtime.StreamsOf(runtime.device())) {
    points.push_back(stream->thread.PushPoint());
  }
  call.Unlock();
  for (const Completion* point : points) point->Wait();
  return call.End(runtime.lost());
}
