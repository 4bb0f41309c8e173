#include "tests/cuda_on_cpu/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace lockstep::cuda_on_cpu {
namespace {

// "devices=2,seed=7,memory=1000,fail=cudaMalloc:3:2".
void ReadEnvironment(Runtime& runtime) {
  const char* text = std::getenv("LOCKSTEP_CUDA_ON_CPU");
  if (text == nullptr) return;
  Settings settings;
  Fault fault;
  std::string left = text;
  while (!left.empty()) {
    const std::string part = left.substr(0, left.find(','));
    left.erase(0, part.size() + 1);
    char call[64] = {};
    long long number = 0;
    int error = 0;
    if (std::sscanf(part.c_str(), "devices=%lld", &number) == 1) {
      settings.devices = static_cast<int>(number);
    } else if (std::sscanf(part.c_str(), "seed=%lld", &number) == 1) {
      settings.seed = static_cast<uint64_t>(number);
    } else if (std::sscanf(part.c_str(), "memory=%lld", &number) == 1) {
      settings.memory = static_cast<size_t>(number);
    } else if (std::sscanf(part.c_str(), "fail=%63[^:]:%lld:%d", call, &number,
                           &error) == 3) {
      fault = {call, number, static_cast<cudaError_t>(error)};
    } else {
      std::fprintf(stderr, "LOCKSTEP_CUDA_ON_CPU: cannot read \"%s\"\n",
                   part.c_str());
      std::abort();
    }
  }
  runtime.Configure(settings);
  if (!fault.call.empty()) runtime.SetFault(fault);
}

}  // namespace

// It stays, for threads of streams may outlive main().
Runtime& Runtime::Get() {
  static Runtime& runtime = []() -> Runtime& {
    auto* made = new Runtime;
    ReadEnvironment(*made);
    return *made;
  }();
  return runtime;
}

Runtime::Runtime() { Configure({}); }

void Runtime::Configure(const Settings& settings) {
  settings_ = settings;
  states_.clear();
  default_streams_.assign(settings.devices, nullptr);
  for (int i = 0; i < settings.devices; ++i) {
    states_.push_back(
        all_states_.emplace_back(std::make_unique<DeviceState>()).get());
  }
  random_.seed(settings.seed);
  memory_.Configure(settings.devices, settings.memory, settings.seed);
  fault_set_ = fault_happened_ = false;
  calls_.clear();
}

void Runtime::SetFault(const Fault& fault) {
  fault_ = fault;
  fault_set_ = true;
  fault_happened_ = false;
  fault_calls_ = 0;
}

cudaError_t Runtime::Note(const char* call) {
  calls_.push_back(call);
  if (device() < static_cast<int>(states_.size()) && lost() != cudaSuccess) {
    return lost();
  }
  const bool counts = fault_set_ && !fault_happened_ &&
                      (fault_.call.empty() || fault_.call == call);
  if (!counts || ++fault_calls_ != fault_.number) return cudaSuccess;
  fault_happened_ = true;
  if (LosesDevice(fault_.error)) Lose(fault_.error);
  return fault_.error;
}

int& Runtime::device() {
  thread_local int device = 0;
  return device;
}

bool Runtime::IsPinned(const void* data, size_t bytes) const {
  if (settings_.coherent) return true;
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto after = pinned_.upper_bound(address);
  if (after == pinned_.begin()) return false;
  const auto& [begin, size] = *--after;
  return address - begin <= size && bytes <= size - (address - begin);
}

CUstream_st* Runtime::Find(cudaStream_t stream) {
  if (stream != nullptr) return streams_.count(stream) == 0 ? nullptr : stream;
  cudaStream_t& made = default_streams_[device()];
  if (made == nullptr) made = MakeStream(/*legacy=*/true);
  return made;
}

cudaStream_t Runtime::MakeStream(bool legacy) {
  const uint64_t seed = settings_.seed == 0 ? 0 : random_() | 1;
  auto* stream = new CUstream_st(device(), state(device()), seed, legacy);
  streams_.insert(stream);
  return stream;
}

cudaEvent_t Runtime::MakeEvent() {
  auto* event = new CUevent_st{.device = device()};
  events_.insert(event);
  return event;
}

void Runtime::Remove(cudaStream_t stream) {
  streams_.erase(stream);
  delete stream;
}

void Runtime::Remove(cudaEvent_t event) {
  events_.erase(event);
  delete event;
}

std::vector<CUstream_st*> Runtime::StreamsOf(int device) const {
  std::vector<CUstream_st*> streams;
  for (CUstream_st* stream : streams_) {
    if (stream->device == device) streams.push_back(stream);
  }
  return streams;
}

cudaError_t Call::End(cudaError_t error) {
  if (injected_ != cudaSuccess) error = injected_;
  if (error != cudaSuccess) LastError() = error;
  return error;
}

bool LosesDevice(cudaError_t error) {
  switch (error) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

cudaError_t& LastError() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

void Configure(const Settings& settings) {
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  runtime.Configure(settings);
  LastError() = cudaSuccess;
}

void SetFault(const Fault& fault) {
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  runtime.SetFault(fault);
}

void ClearFault() { SetFault({"none", 0, cudaSuccess}); }

bool FaultHasHappened() {
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  return runtime.fault_has_happened();
}

std::vector<std::string> TakeCalls() {
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  const std::vector<const char*> calls = runtime.TakeCalls();
  return {calls.begin(), calls.end()};
}

size_t AllocatedBytes() {
  Runtime& runtime = Runtime::Get();
  const std::lock_guard lock(runtime.mutex());
  size_t bytes = 0;
  for (int i = 0; i < runtime.settings().devices; ++i) {
    bytes += runtime.memory().allocated(i);
  }
  return bytes;
}

}  // namespace lockstep::cuda_on_cpu
