#include <cublas_v2.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/runtime.h"

using lockstep::cuda_on_cpu::AddressSpace;
using lockstep::cuda_on_cpu::Call;
using lockstep::cuda_on_cpu::Delays;
using lockstep::cuda_on_cpu::Runtime;

struct cublasContext {
  int device = 0;  // the thread's when it was created
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;  // null: its own
  size_t workspace_bytes = 0;
};

namespace {

// The error of a call of cuBLAS that must fail.
cublasStatus_t Refuse(Call& call) {
  const cudaError_t error = call.End(cudaSuccess);
  if (error == cudaErrorMemoryAllocation) return CUBLAS_STATUS_ALLOC_FAILED;
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

bool IsOperation(cublasOperation_t transpose) {
  return transpose == CUBLAS_OP_N || transpose == CUBLAS_OP_T ||
         transpose == CUBLAS_OP_C;
}

bool IsKnown(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_64F ||
         compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
         compute == CUBLAS_COMPUTE_32F_FAST_TF32;
}

// How tensor cores round an operand: to `bits` of the 23 after the point, to
// nearest, ties to even.
float Round(float value, int bits) {
  if (!std::isfinite(value)) return value;
  const int dropped = 23 - bits;
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof(word));
  word += (1u << (dropped - 1)) - 1 + (word >> dropped & 1);
  word &= ~((1u << dropped) - 1);
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Bits after the point that operands keep; 0 for all of them.
int BitsOf(cublasComputeType_t compute) {
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return 10;
  return compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 7 : 0;
}

// A matrix as cuBLAS stores it, by columns.
struct Matrix {
  const void* data;
  int stride;
  long long next;
  bool transpose;
};

struct Product {
  int m, n, k, count;
  Matrix a, b;
  void* c;
  int stride_c;
  long long next_c;
  int bits;
  bool halves;  // operands are bfloat16 in memory

  size_t operand_bytes(size_t of_sums) const {
    return halves ? sizeof(uint16_t) : of_sums;
  }

  template <typename T>
  T At(const Matrix& matrix, int i, int row, int column) const {
    const long long stride = matrix.stride;
    const long long at =
        i * matrix.next +
        (matrix.transpose ? row * stride + column : column * stride + row);
    if (!halves) return static_cast<const T*>(matrix.data)[at];
    const uint32_t word =
        uint32_t{static_cast<const uint16_t*>(matrix.data)[at]} << 16;
    float value = 0;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }

  template <typename T>
  T Rounded(T value) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return bits == 0 ? value : Round(value, bits);
    }
    return value;
  }

  template <typename T>
  void Run(T alpha, T beta) const {
    for (int i = 0; i < count; ++i) {
      for (int column = 0; column < n; ++column) {
        for (int row = 0; row < m; ++row) {
          T sum = 0;
          for (int j = 0; j < k; ++j) {
            sum +=
                Rounded(At<T>(a, i, row, j)) * Rounded(At<T>(b, i, j, column));
          }
          T& out = static_cast<T*>(
              c)[i * next_c + column * static_cast<long long>(stride_c) + row];
          out = beta == T{0} ? alpha * sum : alpha * sum + beta * out;
        }
      }
    }
  }
};

// Whether a batch of matrices, stored with `rows` rows, is in one allocation.
bool IsInMemory(Runtime& runtime, const void* data, int rows, int columns,
                int stride, long long next, int count, size_t element) {
  if (rows == 0 || columns == 0) return true;
  const auto elements = static_cast<size_t>(
      next * (count - 1) + static_cast<long long>(stride) * (columns - 1) +
      rows);
  return runtime.memory().Holds(data, elements * element);
}

// A device would find it out later, in any call.
bool IsReachable(Runtime& runtime, const Product& p, size_t element) {
  const auto holds = [&](const Matrix& matrix, int rows, int columns) {
    if (matrix.transpose) std::swap(rows, columns);
    return IsInMemory(runtime, matrix.data, rows, columns, matrix.stride,
                      matrix.next, p.count, p.operand_bytes(element));
  };
  return holds(p.a, p.m, p.k) && holds(p.b, p.k, p.n) &&
         IsInMemory(runtime, p.c, p.m, p.n, p.stride_c, p.next_c, p.count,
                    element);
}

template <typename T>
cublasStatus_t QueueProduct(Runtime& runtime, cublasHandle_t handle,
                            Product product, const void* alpha,
                            const void* beta) {
  if (!IsReachable(runtime, product, sizeof(T))) {
    std::fprintf(stderr,
                 "cuda_on_cpu: a product reads or writes beyond the memory of "
                 "its operands\n");
    runtime.Lose(cudaErrorIllegalAddress);
    return CUBLAS_STATUS_SUCCESS;
  }
  const AddressSpace& space = AddressSpace::Get();
  product.a.data = space.Inside(product.a.data);
  product.b.data = space.Inside(product.b.data);
  product.c = space.Inside(product.c);
  void* workspace = space.Inside(handle->workspace);
  const size_t used = std::min<size_t>(handle->workspace_bytes, 256);
  const cudaError_t error = runtime.Queue(
      *runtime.Find(handle->stream),
      [product, workspace, used, alpha = *static_cast<const T*>(alpha),
       beta = *static_cast<const T*>(beta)](Delays&) {
        if (workspace != nullptr) std::memset(workspace, 0xff, used);
        product.Run<T>(alpha, beta);
      });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                              : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  Call call("cublasCreate");
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (call.refusal() != cudaSuccess) return Refuse(call);
  *handle = new cublasContext{.device = call.runtime().device()};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call("cublasDestroy");
  delete handle;
  return call.refusal() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : Refuse(call);
}

// Takes back the workspace, as the library does.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call("cublasSetStream");
  if (call.refusal() != cudaSuccess) return Refuse(call);
  handle->stream = stream;
  handle->workspace = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t bytes) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call("cublasSetWorkspace");
  if (call.refusal() != cudaSuccess) return Refuse(call);
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0 ||
      !call.runtime().memory().Holds(workspace, bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

#define LOCKSTEP_NAME(status) \
  case status:                \
    return #status

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    LOCKSTEP_NAME(CUBLAS_STATUS_SUCCESS);
    LOCKSTEP_NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    LOCKSTEP_NAME(CUBLAS_STATUS_ALLOC_FAILED);
    LOCKSTEP_NAME(CUBLAS_STATUS_INVALID_VALUE);
    LOCKSTEP_NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    LOCKSTEP_NAME(CUBLAS_STATUS_MAPPING_ERROR);
    LOCKSTEP_NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    LOCKSTEP_NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    LOCKSTEP_NAME(CUBLAS_STATUS_NOT_SUPPORTED);
    LOCKSTEP_NAME(CUBLAS_STATUS_LICENSE_ERROR);
  }
  return "unknown status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success"
                                         : "the simulated library refused it";
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transpose_a,
    cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
    const void* a, cudaDataType type_a, int stride_a, long long next_a,
    const void* b, cudaDataType type_b, int stride_b, long long next_b,
    const void* beta, void* c, cudaDataType type_c, int stride_c,
    long long next_c, int count, cublasComputeType_t compute,
    cublasGemmAlgo_t algorithm) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call("cublasGemmStridedBatchedEx");
  if (call.refusal() != cudaSuccess) return Refuse(call);
  Runtime& runtime = call.runtime();
  const int rows_a = transpose_a == CUBLAS_OP_N ? m : k;
  const int rows_b = transpose_b == CUBLAS_OP_N ? k : n;
  if (!IsOperation(transpose_a) || !IsOperation(transpose_b) || m < 0 ||
      n < 0 || k < 0 || count < 0 || alpha == nullptr || beta == nullptr ||
      stride_a < std::max(1, rows_a) || stride_b < std::max(1, rows_b) ||
      stride_c < std::max(1, m) || runtime.Find(handle->stream) == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (handle->device != runtime.device()) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const bool is_double = compute == CUBLAS_COMPUTE_64F;
  const cudaDataType type = is_double ? CUDA_R_64F : CUDA_R_32F;
  const bool halves = compute == CUBLAS_COMPUTE_32F && type_a == CUDA_R_16BF;
  const cudaDataType operand = halves ? CUDA_R_16BF : type;
  if (!IsKnown(compute) || type_a != operand || type_b != operand ||
      type_c != type || algorithm != CUBLAS_GEMM_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
  const Product product = {m,
                           n,
                           k,
                           count,
                           {a, stride_a, next_a, transpose_a != CUBLAS_OP_N},
                           {b, stride_b, next_b, transpose_b != CUBLAS_OP_N},
                           c,
                           stride_c,
                           next_c,
                           BitsOf(compute),
                           halves};
  return is_double ? QueueProduct<double>(runtime, handle, product, alpha, beta)
                   : QueueProduct<float>(runtime, handle, product, alpha, beta);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle,
                            cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k,
                            const void* alpha, const void* a,
                            cudaDataType type_a, int stride_a, const void* b,
                            cudaDataType type_b, int stride_b, const void* beta,
                            void* c, cudaDataType type_c, int stride_c,
                            cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, transpose_a, transpose_b, m, n, k,
                                    alpha, a, type_a, stride_a, 0, b, type_b,
                                    stride_b, 0, beta, c, type_c, stride_c, 0,
                                    1, compute, algorithm);
}
