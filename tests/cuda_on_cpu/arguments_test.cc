// Each call with each wrong argument returns the error that CUDA returns.

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/test_kernel.h"

namespace lockstep::cuda_on_cpu {
namespace {

constexpr size_t kBytes = 64;

// Values that no enumerator has, within the bits that their types have.
constexpr auto kNoCopyKind = static_cast<cudaMemcpyKind>(5);
constexpr auto kNoCaptureMode = static_cast<cudaStreamCaptureMode>(3);
constexpr auto kNoAttribute = static_cast<cudaFuncAttribute>(10);
constexpr auto kNoOperation = static_cast<cublasOperation_t>(3);
constexpr auto kNoCompute = static_cast<cublasComputeType_t>(100);
constexpr auto kNoAlgorithm = static_cast<cublasGemmAlgo_t>(0);

class ArgumentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Configure({});
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
              cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(data_), cudaSuccess);
    EXPECT_EQ(AllocatedBytes(), 0u);
  }

  struct Case {
    std::string what;
    cudaError_t returned;
    cudaError_t expected;
  };
  // Each call has failed as it should; the last error is the last call's.
  static void Check(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      EXPECT_EQ(each.returned, each.expected) << each.what;
    }
    EXPECT_EQ(cudaGetLastError(), cases.back().expected);
  }

  static cudaStream_t EndedStream() {
    const cudaStream_t stream = NewStream();
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    return stream;
  }

  const cudaStream_t stream_ = NewStream();
  const cudaStream_t ended_ = EndedStream();
  char* const data_ = NewMemory<char>(kBytes);
  cudaEvent_t event_ = nullptr;
};

TEST_F(ArgumentsTest, WrongCallsOnDevicesAreRefused) {
  cudaDeviceProp properties;
  char id[13];
  ASSERT_EQ(cudaDeviceGetPCIBusId(id, 13, 0), cudaSuccess);
  EXPECT_STREQ(id, "0000:00:00.0");
  Check({
      {"no place for a count", cudaGetDeviceCount(nullptr),
       cudaErrorInvalidValue},
      {"no place for a device", cudaGetDevice(nullptr), cudaErrorInvalidValue},
      {"no place for an id", cudaDeviceGetPCIBusId(nullptr, 13, 0),
       cudaErrorInvalidValue},
      {"too little place for an id", cudaDeviceGetPCIBusId(id, 12, 0),
       cudaErrorInvalidValue},
      {"the id of device 1 of 1", cudaDeviceGetPCIBusId(id, 13, 1),
       cudaErrorInvalidDevice},
      {"device -1", cudaSetDevice(-1), cudaErrorInvalidDevice},
      {"device 1 of 1", cudaSetDevice(1), cudaErrorInvalidDevice},
      {"no place for properties", cudaGetDeviceProperties(nullptr, 0),
       cudaErrorInvalidValue},
      {"properties of device -1", cudaGetDeviceProperties(&properties, -1),
       cudaErrorInvalidDevice},
      {"properties of device 1 of 1", cudaGetDeviceProperties(&properties, 1),
       cudaErrorInvalidDevice},
  });
}

TEST_F(ArgumentsTest, WrongCallsOnMemoryAreRefused) {
  alignas(4096) static char host[4096];
  size_t bytes = 0;
  void* none = nullptr;
  Check({
      {"no place for memory", cudaMalloc(static_cast<void**>(nullptr), 1),
       cudaErrorInvalidValue},
      {"more than there is", cudaMalloc(&none, size_t{1} << 40),
       cudaErrorMemoryAllocation},
      {"memory of the host is freed", cudaFree(host), cudaErrorInvalidValue},
      {"no place for what is free", cudaMemGetInfo(nullptr, &bytes),
       cudaErrorInvalidValue},
      {"no place for the total", cudaMemGetInfo(&bytes, nullptr),
       cudaErrorInvalidValue},
      {"nothing is pinned", cudaHostRegister(nullptr, 1, 0),
       cudaErrorInvalidValue},
      {"0 bytes are pinned", cudaHostRegister(host, 0, 0),
       cudaErrorInvalidValue},
      {"pinned with flags that are none", cudaHostRegister(host, 1, 1u << 30),
       cudaErrorInvalidValue},
      {"memory of the device is pinned", cudaHostRegister(data_, 1, 0),
       cudaErrorInvalidValue},
      {"unpinned what was not pinned", cudaHostUnregister(host),
       cudaErrorHostMemoryNotRegistered},
  });
  EXPECT_EQ(none, nullptr);
}

TEST_F(ArgumentsTest, WrongCopiesAreRefused) {
  char host[2 * kBytes] = {};
  const auto copy = [&](void* to, const void* from, size_t bytes,
                        cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream_);
  };
  Check({
      {"to nowhere", copy(nullptr, host, 1, cudaMemcpyDefault),
       cudaErrorInvalidValue},
      {"from nowhere", copy(data_, nullptr, 1, cudaMemcpyDefault),
       cudaErrorInvalidValue},
      {"beyond the end of the target",
       copy(data_, host, kBytes + 1, cudaMemcpyDefault), cudaErrorInvalidValue},
      {"beyond the end of the source",
       copy(host, data_ + 1, kBytes, cudaMemcpyDefault), cudaErrorInvalidValue},
      {"up, said to be down", copy(data_, host, 1, cudaMemcpyDeviceToHost),
       cudaErrorInvalidValue},
      {"down, said to be up", copy(host, data_, 1, cudaMemcpyHostToDevice),
       cudaErrorInvalidValue},
      {"a direction that is none", copy(data_, host, 1, kNoCopyKind),
       cudaErrorInvalidMemcpyDirection},
      {"in a stream that has ended",
       cudaMemcpyAsync(data_, host, 1, cudaMemcpyDefault, ended_),
       cudaErrorInvalidResourceHandle},
      {"rows wider than their pitch",
       cudaMemset2DAsync(data_, 2, 0, 4, 2, stream_), cudaErrorInvalidValue},
      {"rows beyond the end", cudaMemset2DAsync(data_, 16, 0, 16, 5, stream_),
       cudaErrorInvalidValue},
      {"memory of the host is set",
       cudaMemset2DAsync(host, 1, 0, 1, 1, stream_), cudaErrorInvalidValue},
      {"set in a stream that has ended",
       cudaMemset2DAsync(data_, 1, 0, 1, 1, ended_),
       cudaErrorInvalidResourceHandle},
  });
}

TEST_F(ArgumentsTest, WrongUsesOfStreamsAndEventsAreRefused) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaEvent_t gone = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&gone, 0), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(gone), cudaSuccess);
  Check({
      {"no place for a stream", cudaStreamCreateWithFlags(nullptr, 0),
       cudaErrorInvalidValue},
      {"a stream with flags that are none",
       cudaStreamCreateWithFlags(&stream, 8), cudaErrorInvalidValue},
      {"the legacy stream is destroyed", cudaStreamDestroy(nullptr),
       cudaErrorInvalidResourceHandle},
      {"destroyed twice", cudaStreamDestroy(ended_),
       cudaErrorInvalidResourceHandle},
      {"waits for a stream that has ended", cudaStreamSynchronize(ended_),
       cudaErrorInvalidResourceHandle},
      {"a stream that has ended waits", cudaStreamWaitEvent(ended_, event_),
       cudaErrorInvalidResourceHandle},
      {"waits for no event", cudaStreamWaitEvent(stream_, nullptr),
       cudaErrorInvalidResourceHandle},
      {"waits with flags that are none",
       cudaStreamWaitEvent(stream_, event_, 8), cudaErrorInvalidValue},
      {"no place for an event", cudaEventCreateWithFlags(nullptr, 0),
       cudaErrorInvalidValue},
      {"an event with flags that are none",
       cudaEventCreateWithFlags(&event, 1u << 30), cudaErrorInvalidValue},
      {"no event is destroyed", cudaEventDestroy(nullptr),
       cudaErrorInvalidResourceHandle},
      {"an event is destroyed twice", cudaEventDestroy(gone),
       cudaErrorInvalidResourceHandle},
      {"no event is recorded", cudaEventRecord(nullptr, stream_),
       cudaErrorInvalidResourceHandle},
      {"recorded in a stream that has ended", cudaEventRecord(event_, ended_),
       cudaErrorInvalidResourceHandle},
      {"asks for no event", cudaEventQuery(nullptr),
       cudaErrorInvalidResourceHandle},
      {"waits for an event that has gone", cudaEventSynchronize(gone),
       cudaErrorInvalidResourceHandle},
  });
}

TEST_F(ArgumentsTest, WrongUsesOfCapturesAndGraphsAreRefused) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed),
            cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraph_t none = nullptr;
  Check({
      {"captures a stream that has ended",
       cudaStreamBeginCapture(ended_, cudaStreamCaptureModeRelaxed),
       cudaErrorInvalidResourceHandle},
      {"captures the legacy stream",
       cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed),
       cudaErrorStreamCaptureUnsupported},
      {"captures in a mode that is none",
       cudaStreamBeginCapture(stream_, kNoCaptureMode), cudaErrorInvalidValue},
      {"no place for a graph", cudaStreamEndCapture(stream_, nullptr),
       cudaErrorInvalidValue},
      {"ends a capture that has not begun",
       cudaStreamEndCapture(stream_, &none), cudaErrorIllegalState},
      {"no place for what can be launched",
       cudaGraphInstantiateWithFlags(nullptr, graph, 0), cudaErrorInvalidValue},
      {"no graph", cudaGraphInstantiateWithFlags(&executable, nullptr, 0),
       cudaErrorInvalidValue},
      {"flags that are none",
       cudaGraphInstantiateWithFlags(&executable, graph, 1u << 30),
       cudaErrorInvalidValue},
      {"no graph is destroyed", cudaGraphDestroy(nullptr),
       cudaErrorInvalidValue},
      {"nothing is destroyed", cudaGraphExecDestroy(nullptr),
       cudaErrorInvalidValue},
      {"nothing is launched", cudaGraphLaunch(nullptr, stream_),
       cudaErrorInvalidValue},
  });
  EXPECT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, ended_),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(ArgumentsTest, WrongLaunchesAreRefused) {
  struct Shape {
    std::string what;
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
    cudaError_t expected;
  };
  constexpr size_t kShared = 48 << 10;  // of a kernel that asked for no more
  const auto nothing = [](char*) {};
  for (const Shape& shape : std::vector<Shape>{
           {"no blocks in x", dim3(0), dim3(1), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"no blocks in z", dim3(1, 1, 0), dim3(1), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"2^31 blocks in x", dim3(0x80000000u), dim3(1), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"65536 blocks in y", dim3(1, 65536), dim3(1), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"65536 blocks in z", dim3(1, 1, 65536), dim3(1), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"no threads", dim3(1), dim3(1, 0), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"1025 threads", dim3(1), dim3(1025), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"1056 threads", dim3(1), dim3(33, 32), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"65 threads in z", dim3(1), dim3(1, 1, 65), 0, stream_,
            cudaErrorInvalidConfiguration},
           {"more shared memory than it may have", dim3(1), dim3(1),
            kShared + 1, stream_, cudaErrorInvalidValue},
           {"in a stream that has ended", dim3(1), dim3(1), 0, ended_,
            cudaErrorInvalidResourceHandle}}) {
    Launcher(nothing, "Test", shape.grid, shape.block, shape.shared_bytes,
             shape.stream)(data_);
    EXPECT_EQ(cudaGetLastError(), shape.expected) << shape.what;
  }
}

TEST_F(ArgumentsTest, WrongAttributesOfKernelsAreRefused) {
  const int kernel = 0;
  const auto set = [](const void* of, cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute(of, attribute, value);
  };
  constexpr auto kShared = cudaFuncAttributeMaxDynamicSharedMemorySize;
  Check({
      {"of no kernel", set(nullptr, kShared, 1),
       cudaErrorInvalidDeviceFunction},
      {"-1 bytes", set(&kernel, kShared, -1), cudaErrorInvalidValue},
      {"more than a block of any device has",
       set(&kernel, kShared, (227 << 10) + 1), cudaErrorInvalidValue},
      {"an attribute that is none", set(&kernel, kNoAttribute, 1),
       cudaErrorInvalidValue},
  });
}

// A call of cuBLAS with one argument changed.
struct Product {
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  int m = 2, n = 2, k = 2;
  bool has_alpha = true, has_beta = true;
  cudaDataType type_a = CUDA_R_32F;
  int stride_a = 2, stride_b = 2, stride_c = 2;
  int count = 1;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasGemmAlgo_t algorithm = CUBLAS_GEMM_DEFAULT;
};

TEST_F(ArgumentsTest, WrongProductsAreRefused) {
  cublasHandle_t blas = nullptr;
  ASSERT_EQ(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(blas, stream_), CUBLAS_STATUS_SUCCESS);
  const auto multiply = [&](const Product& p) {
    const float one = 1;
    return cublasGemmStridedBatchedEx(
        blas, p.transpose_a, p.transpose_b, p.m, p.n, p.k,
        p.has_alpha ? &one : nullptr, data_, p.type_a, p.stride_a, 0, data_,
        CUDA_R_32F, p.stride_b, 0, p.has_beta ? &one : nullptr, data_,
        CUDA_R_32F, p.stride_c, 0, p.count, p.compute, p.algorithm);
  };
  EXPECT_EQ(multiply({}), CUBLAS_STATUS_SUCCESS);
  const std::vector<Product> wrong = {{.transpose_a = kNoOperation},
                                      {.transpose_b = kNoOperation},
                                      {.m = -1},
                                      {.n = -1},
                                      {.k = -1},
                                      {.has_alpha = false},
                                      {.has_beta = false},
                                      {.stride_a = 1},
                                      {.stride_b = 1},
                                      {.stride_c = 1},
                                      {.transpose_a = CUBLAS_OP_T, .k = 3},
                                      {.count = -1}};
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(multiply(wrong[i]), CUBLAS_STATUS_INVALID_VALUE) << i;
  }
  EXPECT_EQ(multiply({.type_a = CUDA_R_64F}), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply({.compute = CUBLAS_COMPUTE_64F}),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply({.compute = kNoCompute}), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply({.algorithm = kNoAlgorithm}), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
}

TEST_F(ArgumentsTest, WrongHandlesOfCublasAreRefused) {
  cublasHandle_t blas = nullptr;
  EXPECT_EQ(cublasCreate(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetStream(nullptr, stream_), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetWorkspace(nullptr, data_, 1),
            CUBLAS_STATUS_NOT_INITIALIZED);
  ASSERT_EQ(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace(blas, data_ + 1, 1), CUBLAS_STATUS_INVALID_VALUE)
      << "not at a multiple of 256 bytes";
  EXPECT_EQ(cublasSetWorkspace(blas, data_, kBytes + 1),
            CUBLAS_STATUS_INVALID_VALUE)
      << "beyond the end";
  EXPECT_EQ(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace lockstep::cuda_on_cpu
