#include "worker/compute/cuda/cuda_device.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/compute/cuda/cublas_library.h"
#include "worker/compute/cuda/cuda_recording.h"
#include "worker/compute/kernels/elementwise.h"

namespace lockstep::worker::cuda {
namespace {

// As NVIDIA advises for Hopper.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr char kOpen[] = "Open";

// True once a device other than the first is open. Until then every thread has
// the right device, and Select() costs nothing.
std::atomic<bool> has_several{false};

// cudaFree() waits for the device that is selected, which must be that of the
// memory: else a kernel may still use what is freed.
void FreeDevice(void* data) {
  if (has_several.load(std::memory_order_relaxed)) {
    cudaPointerAttributes attributes = {};
    const cudaError_t error = cudaPointerGetAttributes(&attributes, data);
    Ignore(error == cudaSuccess ? cudaSetDevice(attributes.device) : error);
  }
  Ignore(cudaFree(data));
}

void Unpin(void* data) { Ignore(cudaHostUnregister(data)); }

cublasOperation_t Transpose(bool transpose) {
  return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// uint16_t stands for bfloat16.
template <typename T>
constexpr cudaDataType_t kDataType = std::is_same_v<T, double>     ? CUDA_R_64F
                                     : std::is_same_v<T, uint16_t> ? CUDA_R_16BF
                                                                   : CUDA_R_32F;

// Operands are float32 in memory; with a lower precision tensor cores round
// them as they read.
cublasComputeType_t ComputeType(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kBfloat16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Precision::kFloat32:
      break;
  }
  return CUBLAS_COMPUTE_32F;
}

// Whether the operands can be rounded to bfloat16 in memory: they are dense,
// and their rows begin where tensor cores can read. An H200 then takes half as
// long for a product of 8,192^3 as where cuBLAS rounds, which it does to TF32;
// small products do not repay the conversion.
bool RoundsInMemory(const StridedGemm& gemm) {
  constexpr int64_t kLeast = 64;
  constexpr int64_t kMultiple = 8;
  for (const int64_t side : {gemm.m, gemm.n, gemm.k}) {
    if (side < kLeast || side % kMultiple != 0) return false;
  }
  return gemm.outer_count == 1 && gemm.inner_count == 1 &&
         gemm.a.stride == (gemm.a.transpose ? gemm.m : gemm.k) &&
         gemm.b.stride == (gemm.b.transpose ? gemm.k : gemm.n);
}

}  // namespace

absl::Status CudaDevice::Select(const char* operation) const {
  if (!has_several.load(std::memory_order_relaxed)) return absl::OkStatus();
  return Check(cudaSetDevice(index_), "cudaSetDevice", operation);
}

absl::StatusOr<CudaDevice> CudaDevice::Open(int index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  // An unknown error comes from the driver, which may have no device: "auto"
  // then uses the CPU. A lost device must not be hidden in that way.
  if (IsLost(error) && error != cudaErrorUnknown) {
    return ToStatus(
        error, {"cudaGetDeviceCount", kOpen, absl::StrCat("device ", index)});
  }
  if (error != cudaSuccess || count == 0) {
    Ignore(error);
    return absl::FailedPreconditionError(absl::StrCat(
        "backend cuda: no device can be used: cudaGetDeviceCount: ",
        error == cudaSuccess ? "there is none" : cudaGetErrorString(error),
        "; install a driver, set CUDA_VISIBLE_DEVICES, or use cpu"));
  }
  if (index < 0 || index >= count) {
    return absl::FailedPreconditionError(absl::StrCat(
        "backend cuda: there is no device ", index, ": this process sees ",
        count, "; set CUDA_VISIBLE_DEVICES to more"));
  }
  // Only now: a machine without a GPU need not have the library.
  if (absl::Status s = LoadCublas(); !s.ok()) return s;
  if (index > 0) has_several = true;
  CudaDevice device(index);
  if (absl::Status s = device.Initialise(); !s.ok()) return s;
  return device;
}

absl::Status CudaDevice::Initialise() {
  cudaDeviceProp properties = {};
  // On the heap, because recordings refer to it and a CudaDevice may be moved.
  name_ = std::make_unique<std::string>(absl::StrCat("device ", index_));
  if (absl::Status s = Check(cudaSetDevice(index_), "cudaSetDevice", kOpen);
      !s.ok()) {
    return s;
  }
  const cudaError_t described = cudaGetDeviceProperties(&properties, index_);
  // The name is only for messages.
  Ignore(described);
  if (described == cudaSuccess) {
    absl::StrAppend(name_.get(), " (", properties.name, ")");
  }
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams) {
    if (absl::Status s =
            Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags", kOpen);
        !s.ok()) {
      return s;
    }
    (compute_ == nullptr ? compute_ : copies_).reset(stream);
  }
  cudaEvent_t event = nullptr;
  if (absl::Status s =
          Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                "cudaEventCreateWithFlags", kOpen);
      !s.ok()) {
    return s;
  }
  computed_.reset(event);
  cublasHandle_t blas = nullptr;
  if (absl::Status s =
          ToStatus(cublasCreate(&blas), {"cublasCreate", kOpen, *name_});
      !s.ok()) {
    return s;
  }
  blas_.reset(blas);
  if (absl::Status s = Grow(workspace_, kWorkspaceBytes); !s.ok()) return s;
  if (absl::Status s = ToStatus(cublasSetStream(blas, compute()),
                                {"cublasSetStream", kOpen, *name_});
      !s.ok()) {
    return s;
  }
  return ToStatus(
      cublasSetWorkspace(blas, workspace_.data(), workspace_.bytes()),
      {"cublasSetWorkspace", kOpen, *name_});
}

// Members free memory next, which no kernel or copy may use then.
CudaDevice::~CudaDevice() {
  if (copies_ != nullptr) Ignore(cudaStreamSynchronize(copies_.get()));
  if (compute_ != nullptr) Ignore(cudaStreamSynchronize(compute()));
}

absl::StatusOr<Buffer> CudaDevice::Allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  if (absl::Status s = Select("Allocate"); !s.ok()) return s;
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    Ignore(error);
    size_t free = 0;
    size_t total = 0;
    Ignore(cudaMemGetInfo(&free, &total));
    return OutOfMemory(bytes, free, total, *name_);
  }
  if (absl::Status s = Check(error, "cudaMalloc", "Allocate"); !s.ok()) {
    return s;
  }
  // Recorded passes may have the address of memory that was freed before.
  ++generation_;
  return Buffer(data, bytes, FreeDevice);
}

absl::Status CudaDevice::Grow(Buffer& buffer, size_t bytes) {
  if (buffer.bytes() >= bytes) return absl::OkStatus();
  absl::StatusOr<Buffer> larger = Allocate(bytes);
  if (!larger.ok()) return larger.status();
  buffer =
      *std::move(larger);  // cudaFree() waits for kernels that use the old one
  return absl::OkStatus();
}

absl::StatusOr<Buffer> CudaDevice::Pin(absl::Span<std::byte> memory) {
  if (memory.empty()) return Buffer();
  const cudaError_t error =
      cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault);
  if (error != cudaSuccess) {
    Ignore(error);
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot pin ", memory.size(), " bytes: ", cudaGetErrorString(error)));
  }
  return Buffer(memory.data(), memory.size(), Unpin);
}

absl::Status CudaDevice::Copy(const char* operation, const void* from, void* to,
                              size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (absl::Status s =
          Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, compute()),
                "cudaMemcpyAsync", operation);
      !s.ok()) {
    return s;
  }
  return Check(cudaStreamSynchronize(compute()), "cudaStreamSynchronize",
               operation);
}

absl::StatusOr<CopyId> CudaDevice::NewEvent(const char* operation) {
  if (!idle_.empty()) {
    const CopyId id = idle_.back();
    idle_.pop_back();
    return id;
  }
  if (absl::Status s = Select(operation); !s.ok()) return s;
  cudaEvent_t event = nullptr;
  if (absl::Status s =
          Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                "cudaEventCreateWithFlags", operation);
      !s.ok()) {
    return s;
  }
  events_.emplace_back(event);
  return CopyId{events_.size() - 1};
}

absl::StatusOr<CopyId> CudaDevice::StartCopy(const char* operation,
                                             const void* from, void* to,
                                             size_t bytes) {
  absl::StatusOr<CopyId> copy = NewEvent(operation);
  if (!copy.ok()) return copy;
  // The copy must follow the operations queued so far, which write its source
  // or still read its target; later ones may run beside it.
  cudaStream_t stream = copies_.get();
  absl::Status s = Check(cudaEventRecord(computed_.get(), compute()),
                         "cudaEventRecord", operation);
  if (s.ok()) {
    s = Check(cudaStreamWaitEvent(stream, computed_.get()),
              "cudaStreamWaitEvent", operation);
  }
  // After a failed call above the copy might not wait for its source.
  if (s.ok() && bytes != 0) {
    s = Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
              "cudaMemcpyAsync", operation);
  }
  if (s.ok()) {
    s = Check(cudaEventRecord(events_[*copy].get(), stream), "cudaEventRecord",
              operation);
  }
  if (s.ok()) return copy;
  idle_.push_back(*copy);
  return s;
}

absl::Status CudaDevice::UseCopy(CopyId copy) {
  return Check(cudaStreamWaitEvent(compute(), events_[copy].get()),
               "cudaStreamWaitEvent", "UseCopy");
}

absl::StatusOr<bool> CudaDevice::CopyIsDone(CopyId copy) {
  const cudaError_t error = cudaEventQuery(events_[copy].get());
  // No failure, but CUDA keeps it as the thread's last error.
  if (error == cudaErrorNotReady) {
    Ignore(error);
    return false;
  }
  if (absl::Status s = Check(error, "cudaEventQuery", "CopyIsDone"); !s.ok()) {
    return s;
  }
  return true;
}

absl::Status CudaDevice::FinishCopy(CopyId copy) {
  const absl::Status status = Check(cudaEventSynchronize(events_[copy].get()),
                                    "cudaEventSynchronize", "FinishCopy");
  // A second call for one copy must not give its event to two later copies.
  if (std::find(idle_.begin(), idle_.end(), copy) == idle_.end()) {
    idle_.push_back(copy);
  }
  return status;
}

AttentionProducts CudaDevice::ProductsOfAttention() const {
  switch (precision_) {
    case Precision::kTf32:
      return AttentionProducts::kTf32;
    case Precision::kBfloat16:
      return AttentionProducts::kBfloat16;
    case Precision::kFloat32:
      break;
  }
  return AttentionProducts::kFloat32;
}

absl::Status CudaDevice::Attention(const char* operation,
                                   const kernel_backend::AttentionShape& shape,
                                   const float* qkv, float* out,
                                   float* log_sums) {
  return Check(
      LaunchAttention(compute(), ProductsOfAttention(),
                      {shape.sequences, shape.length, shape.heads, shape.head(),
                       static_cast<float>(shape.scale()), qkv},
                      {out, log_sums}),
      "launch", operation);
}

absl::Status CudaDevice::AttentionGradient(
    const char* operation, const kernel_backend::AttentionShape& shape,
    const float* qkv, const float* out, const float* log_sums,
    const float* out_gradient, float* products, float* qkv_gradient) {
  return Check(LaunchAttentionGradient(
                   compute(), ProductsOfAttention(),
                   {shape.sequences, shape.length, shape.heads, shape.head(),
                    static_cast<float>(shape.scale()), qkv},
                   {out, log_sums}, {out_gradient, products, qkv_gradient}),
               "launch", operation);
}

absl::Status CudaDevice::BeginRecording() {
  return BeginCapture(compute(), *name_);
}

absl::StatusOr<std::unique_ptr<Recording>> CudaDevice::EndRecording() {
  return EndCapture(compute(), *name_);
}

template <typename T>
absl::Status CudaDevice::Zero(const char* operation, const StridedGemm& gemm,
                              T* out) {
  for (int64_t i = 0; i < gemm.outer_count; ++i) {
    for (int64_t j = 0; j < gemm.inner_count; ++j) {
      const absl::Status status = Check(
          cudaMemset2DAsync(out + gemm.Offset(gemm.out, i, j),
                            static_cast<size_t>(gemm.out.stride) * sizeof(T), 0,
                            static_cast<size_t>(gemm.n) * sizeof(T),
                            static_cast<size_t>(gemm.m), compute()),
          "cudaMemset2DAsync", operation);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// cuBLAS stores columns, this backend rows. Read as columns, each matrix is its
// transpose, and b^T a^T = (a b)^T: so the operands change places.
template <typename T, typename Out>
absl::Status CudaDevice::GemmOf(const char* operation, const StridedGemm& gemm,
                                const T* a, const T* b, Out* out,
                                cublasComputeType_t compute_type) {
  if (gemm.m == 0 || gemm.n == 0) return absl::OkStatus();
  if (gemm.k == 0) {
    // A product over no elements is zero; cuBLAS refuses such sides.
    return gemm.accumulate ? absl::OkStatus() : Zero(operation, gemm, out);
  }
  const Out alpha = static_cast<Out>(gemm.alpha);
  const Out beta = gemm.accumulate ? Out{1} : Out{0};
  const auto side = [](int64_t size) { return static_cast<int>(size); };
  if (absl::Status s = Select(operation); !s.ok()) return s;
  for (int64_t i = 0; i < gemm.outer_count; ++i) {
    const cublasStatus_t error = cublasGemmStridedBatchedEx(
        blas_.get(), Transpose(gemm.b.transpose), Transpose(gemm.a.transpose),
        side(gemm.n), side(gemm.m), side(gemm.k), &alpha,
        b + gemm.Offset(gemm.b, i, 0), kDataType<T>, side(gemm.b.stride),
        gemm.b.inner, a + gemm.Offset(gemm.a, i, 0), kDataType<T>,
        side(gemm.a.stride), gemm.a.inner, &beta,
        out + gemm.Offset(gemm.out, i, 0), kDataType<Out>,
        side(gemm.out.stride), gemm.out.inner, side(gemm.inner_count),
        compute_type, CUBLAS_GEMM_DEFAULT);
    if (absl::Status s =
            ToStatus(error, {"cublasGemmStridedBatchedEx", operation, *name_});
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::GemmOfHalves(const char* operation,
                                      const StridedGemm& gemm, const float* a,
                                      const float* b, float* out) {
  const auto round = [&](const float* from, int64_t size, Buffer& to) {
    if (absl::Status s = Grow(to, static_cast<size_t>(size) * sizeof(uint16_t));
        !s.ok()) {
      return s;
    }
    return ForEach(
        operation, size,
        kernels::ToBfloat16{from, static_cast<uint16_t*>(to.data())});
  };
  if (absl::Status s = round(a, gemm.m * gemm.k, half_a_); !s.ok()) return s;
  if (absl::Status s = round(b, gemm.k * gemm.n, half_b_); !s.ok()) return s;
  return GemmOf(operation, gemm, static_cast<const uint16_t*>(half_a_.data()),
                static_cast<const uint16_t*>(half_b_.data()), out,
                CUBLAS_COMPUTE_32F);
}

absl::Status CudaDevice::Gemm(const char* operation, const StridedGemm& gemm,
                              const float* a, const float* b, float* out) {
  if (precision_ == Precision::kBfloat16 && RoundsInMemory(gemm)) {
    return GemmOfHalves(operation, gemm, a, b, out);
  }
  return GemmOf(operation, gemm, a, b, out, ComputeType(precision_));
}

absl::Status CudaDevice::Gemm(const char* operation, const StridedGemm& gemm,
                              const double* a, const double* b, double* out) {
  return GemmOf(operation, gemm, a, b, out, CUBLAS_COMPUTE_64F);
}

}  // namespace lockstep::worker::cuda
