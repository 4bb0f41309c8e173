#include "worker/compute/cuda/cublas_library.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::worker::cuda {
namespace {

constexpr cublasStatus_t kMissing = CUBLAS_STATUS_NOT_INITIALIZED;
constexpr char kMissingText[] = "cuBLAS is not installed";

// The system's library comes first, then that of the toolkit of this build.
const absl::StatusOr<void*>& Library() {
  // Never closed: handles may still be destroyed while the process ends.
  static const auto& library = *new absl::StatusOr<void*>([] {
    // The major version of the headers: functions of another one may differ.
    const std::string name = absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR);
    const std::vector<std::string> names = {
        name, absl::StrCat(LOCKSTEP_CUBLAS_DIRECTORY "/", name)};
    return OpenFirst(names);
  }());
  return library;
}

// Returns null if the library or the function is missing.
template <typename Function>
Function* Find(const char* name) {
  const absl::StatusOr<void*>& library = Library();
  if (!library.ok()) return nullptr;
  return reinterpret_cast<Function*>(dlsym(*library, name));
}

}  // namespace

absl::StatusOr<void*> OpenFirst(absl::Span<const std::string> names) {
  std::string tried;
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    absl::StrAppend(&tried, dlerror(), "; ");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("backend cuda: cuBLAS cannot be loaded: ", tried,
                   "install CUDA's run-time libraries, or use cpu"));
}

absl::Status LoadCublas() { return Library().status(); }

}  // namespace lockstep::worker::cuda

using lockstep::worker::cuda::Find;
using lockstep::worker::cuda::kMissing;
using lockstep::worker::cuda::kMissingText;

// The functions below have the names of cuBLAS, so that callers need no other
// header, and forward to the loaded library.
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static auto* const call = Find<decltype(cublasCreate_v2)>("cublasCreate_v2");
  return call == nullptr ? kMissing : call(handle);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  static auto* const call =
      Find<decltype(cublasDestroy_v2)>("cublasDestroy_v2");
  return call == nullptr ? kMissing : call(handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  static auto* const call =
      Find<decltype(cublasSetStream_v2)>("cublasSetStream_v2");
  return call == nullptr ? kMissing : call(handle, stream);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t bytes) {
  static auto* const call =
      Find<decltype(cublasSetWorkspace_v2)>("cublasSetWorkspace_v2");
  return call == nullptr ? kMissing : call(handle, workspace, bytes);
}

const char* cublasGetStatusName(cublasStatus_t status) {
  static auto* const call =
      Find<decltype(cublasGetStatusName)>("cublasGetStatusName");
  return call == nullptr ? kMissingText : call(status);
}

const char* cublasGetStatusString(cublasStatus_t status) {
  static auto* const call =
      Find<decltype(cublasGetStatusString)>("cublasGetStatusString");
  return call == nullptr ? kMissingText : call(status);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transpose_a,
    cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
    const void* a, cudaDataType type_a, int stride_a, long long next_a,
    const void* b, cudaDataType type_b, int stride_b, long long next_b,
    const void* beta, void* c, cudaDataType type_c, int stride_c,
    long long next_c, int count, cublasComputeType_t compute,
    cublasGemmAlgo_t algorithm) {
  using Function = cublasStatus_t(
      cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
      const void*, const void*, cudaDataType, int, long long, const void*,
      cudaDataType, int, long long, const void*, void*, cudaDataType, int,
      long long, int, cublasComputeType_t, cublasGemmAlgo_t);
  static Function* const call = Find<Function>("cublasGemmStridedBatchedEx");
  if (call == nullptr) return kMissing;
  return call(handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a,
              stride_a, next_a, b, type_b, stride_b, next_b, beta, c, type_c,
              stride_c, next_c, count, compute, algorithm);
}
