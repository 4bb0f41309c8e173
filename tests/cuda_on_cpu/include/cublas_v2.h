#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUBLAS_V2_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUBLAS_V2_H_

#include <cuda_runtime_api.h>

// The calls of cuBLAS that worker/compute/cuda and its benchmark make, on a
// simulated device.

// No cuBLAS has this version: libcublas.so.0 is the simulated one.
#define CUBLAS_VER_MAJOR 0

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};

enum cublasOperation_t {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,
};

enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

enum cublasGemmAlgo_t {
  CUBLAS_GEMM_DEFAULT = -1,
};

typedef struct cublasContext* cublasHandle_t;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t bytes);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasGemmEx(cublasHandle_t handle,
                            cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k,
                            const void* alpha, const void* a,
                            cudaDataType type_a, int stride_a, const void* b,
                            cudaDataType type_b, int stride_b, const void* beta,
                            void* c, cudaDataType type_c, int stride_c,
                            cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transpose_a,
    cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
    const void* a, cudaDataType type_a, int stride_a, long long next_a,
    const void* b, cudaDataType type_b, int stride_b, long long next_b,
    const void* beta, void* c, cudaDataType type_c, int stride_c,
    long long next_c, int count, cublasComputeType_t compute,
    cublasGemmAlgo_t algorithm);

}  // extern "C"

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUBLAS_V2_H_
