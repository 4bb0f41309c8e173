#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/compute/backend/attention_shape.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/cuda/attention.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/launch.h"
#include "worker/compute/kernels/strided_gemm.h"
#include "worker/compute/replay/recording.h"

namespace lockstep::worker::cuda {

// CudaDevice is a Device (worker/compute/backend/kernel_backend.h) on one GPU.
// Operations are queued on a compute stream; copies that run beside them are on
// a second stream, with an event each.
//
// Threads: as ComputeBackend.
// Errors:  those of ToStatus(). A kernel's own failure shows in a later call.
class CudaDevice {
 public:
  static constexpr bool kUsesOrdinaryMemory = false;
  static constexpr bool kHasOwnLoops = false;
  static constexpr bool kHasFusedAttention = true;

  // A device that this process may see (CUDA_VISIBLE_DEVICES), counted from 0.
  //
  //   kFailedPrecondition  there is none of this number, or no driver for it
  static absl::StatusOr<CudaDevice> Open(int index = 0);

  CudaDevice(CudaDevice&&) = default;
  CudaDevice& operator=(CudaDevice&&) = default;
  ~CudaDevice();

  // "device 0 (NVIDIA H100)".
  const std::string& name() const { return *name_; }
  void set_precision(Precision precision) {
    precision_ = precision;
    ++generation_;
  }

  template <typename F>
  absl::Status ForEach(const char* operation, int64_t n, const F& f) {
    return Check(LaunchForEach(compute(), n, f), "launch", operation);
  }
  template <typename F>
  absl::Status Grid(const char* operation, int64_t rows, int64_t n,
                    const F& f) {
    return Check(LaunchGrid(compute(), rows, n, f), "launch", operation);
  }
  template <typename F>
  absl::Status Rows(const char* operation, int64_t rows, const F& f) {
    return Check(LaunchRows(compute(), rows, f), "launch", operation);
  }
  template <typename T, typename F>
  absl::Status SumColumns(const char* operation, int64_t rows, int64_t n,
                          const F& f, T* out) {
    const size_t bytes =
        static_cast<size_t>(SumChunks(rows, n) * n) * sizeof(T);
    if (absl::Status s = Grow(partial_, bytes); !s.ok()) return s;
    return Check(LaunchSumColumns(compute(), rows, n, f,
                                  static_cast<T*>(partial_.data()), out),
                 "launch", operation);
  }
  absl::Status Gemm(const char* operation, const StridedGemm& gemm,
                    const float* a, const float* b, float* out);
  absl::Status Gemm(const char* operation, const StridedGemm& gemm,
                    const double* a, const double* b, double* out);

  // True if Attention() takes tensors of this type with heads of `head`
  // elements.
  bool FusesAttention(ElementType type, int64_t head) const {
    return type == ElementType::kFloat32 && head <= kMaxFusedHead;
  }
  // As LaunchAttention() and LaunchAttentionGradient() have them.
  absl::Status Attention(const char* operation,
                         const kernel_backend::AttentionShape& shape,
                         const float* qkv, float* out, float* log_sums);
  absl::Status AttentionGradient(const char* operation,
                                 const kernel_backend::AttentionShape& shape,
                                 const float* qkv, const float* out,
                                 const float* log_sums,
                                 const float* out_gradient, float* products,
                                 float* qkv_gradient);

  // As these methods of RecordingDevice; recordings are of the compute stream.
  uint64_t generation() const { return generation_; }
  absl::Status BeginRecording();
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording();

  absl::StatusOr<Buffer> Allocate(size_t bytes);
  absl::StatusOr<Buffer> Pin(absl::Span<std::byte> memory);
  // Copies between ordinary memory and the device, after the operations queued
  // so far; complete on return.
  absl::Status Copy(const char* operation, const void* from, void* to,
                    size_t bytes);
  // Starts a copy on the second stream, after the operations queued so far and
  // beside later ones.
  absl::StatusOr<CopyId> StartCopy(const char* operation, const void* from,
                                   void* to, size_t bytes);
  absl::Status UseCopy(CopyId copy);
  absl::StatusOr<bool> CopyIsDone(CopyId copy);
  absl::Status FinishCopy(CopyId copy);

 private:
  template <typename Object, auto destroy>
  struct Destroyer {
    using pointer = Object;
    void operator()(Object object) const {
      if constexpr (std::is_same_v<decltype(destroy(object)), cudaError_t>) {
        Ignore(destroy(object));
      } else {
        destroy(object);
      }
    }
  };
  using Stream =
      std::unique_ptr<CUstream_st, Destroyer<cudaStream_t, cudaStreamDestroy>>;
  using Event =
      std::unique_ptr<CUevent_st, Destroyer<cudaEvent_t, cudaEventDestroy>>;
  using Blas =
      std::unique_ptr<cublasContext, Destroyer<cublasHandle_t, cublasDestroy>>;

  explicit CudaDevice(int index) : index_(index) {}
  absl::Status Initialise();
  // Makes this the thread's device, on which CUDA allocates memory and events
  // and launches kernels.
  absl::Status Select(const char* operation) const;
  absl::Status Check(cudaError_t error, const char* call,
                     const char* operation) const {
    return ToStatus(error, {call, operation, *name_});
  }
  // Selects the device. Where that fails, CUDA refuses to launch on the stream,
  // which is not of the thread's device; copies do not depend on it.
  cudaStream_t compute() const {
    Select("select").IgnoreError();
    return compute_.get();
  }
  AttentionProducts ProductsOfAttention() const;
  absl::Status Grow(Buffer& buffer, size_t bytes);
  absl::StatusOr<CopyId> NewEvent(const char* operation);
  // T is the type of the operands in memory, Out that of the sums.
  template <typename T, typename Out>
  absl::Status GemmOf(const char* operation, const StridedGemm& gemm,
                      const T* a, const T* b, Out* out,
                      cublasComputeType_t compute_type);
  // The product of the operands, rounded to bfloat16 in memory of the device.
  absl::Status GemmOfHalves(const char* operation, const StridedGemm& gemm,
                            const float* a, const float* b, float* out);
  template <typename T>
  absl::Status Zero(const char* operation, const StridedGemm& gemm, T* out);

  int index_ = 0;
  std::unique_ptr<std::string> name_;
  Precision precision_ = Precision::kFloat32;
  uint64_t generation_ = 0;
  Stream compute_;
  Stream copies_;
  Event computed_;    // records the operations that a copy follows
  Buffer workspace_;  // for cuBLAS: its own would depend on earlier calls
  Blas blas_;
  Buffer partial_;
  Buffer half_a_;  // operands in bfloat16
  Buffer half_b_;
  std::vector<Event> events_;  // a CopyId is an index
  std::vector<CopyId> idle_;   // events whose copy has been finished
};

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_
