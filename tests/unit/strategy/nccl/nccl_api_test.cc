// The declarations against NVIDIA's headers, where the build found them: what
// compiles is right.

#include "strategy/nccl/nccl_api.h"

#include <type_traits>

#include "gtest/gtest.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#include <nccl.h>
#define LOCKSTEP_HAS_NCCL_HEADERS
#endif

namespace lockstep::strategy {
namespace {

TEST(NcclApiTest, TheConfigurationIsThatOfNccl214) {
  EXPECT_EQ(sizeof(NcclConfig), 24u);
  EXPECT_EQ(NcclConfig().blocking, 0);
}

#ifdef LOCKSTEP_HAS_NCCL_HEADERS

// How a type is passed to a function.
template <typename T>
struct Passed {
  using Type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <typename T>
struct Passed<T*> {
  using Type = void*;
};
template <>
struct Passed<ncclUniqueId> {
  using Type = NcclUniqueId;
};
template <typename Signature>
struct PassedBy;
template <typename R, typename... A>
struct PassedBy<R(A...)> {
  using Type = typename Passed<R>::Type(typename Passed<A>::Type...);
};
// Whether a loaded function is passed the same as one of a header.
template <typename Ours, typename Theirs>
constexpr bool Agree() {
  return std::is_same_v<typename PassedBy<typename Ours::Signature>::Type,
                        typename PassedBy<Theirs>::Type>;
}

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) ==
              offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, undefined) ==
              offsetof(ncclConfig_t, cgaClusterSize));
static_assert(sizeof(ncclResult_t) == sizeof(NcclResult));
static_assert(sizeof(cudaError_t) == sizeof(CudaResult));
static_assert(kNcclSuccess == ncclSuccess);
static_assert(kNcclUnhandledCudaError == ncclUnhandledCudaError);
static_assert(kNcclSystemError == ncclSystemError);
static_assert(kNcclInternalError == ncclInternalError);
static_assert(kNcclInvalidArgument == ncclInvalidArgument);
static_assert(kNcclInvalidUsage == ncclInvalidUsage);
static_assert(kNcclRemoteError == ncclRemoteError);
static_assert(kNcclInProgress == ncclInProgress);
static_assert(kNcclUint8 == ncclUint8);
static_assert(kCudaSuccess == cudaSuccess);
static_assert(kCudaErrorMemoryAllocation == cudaErrorMemoryAllocation);
static_assert(kCudaErrorNotReady == cudaErrorNotReady);
static_assert(kCudaHostToDevice == cudaMemcpyHostToDevice);
static_assert(kCudaDeviceToHost == cudaMemcpyDeviceToHost);
static_assert(kCudaStreamNonBlocking == cudaStreamNonBlocking);
static_assert(kCudaEventDisableTiming == cudaEventDisableTiming);

#define LOCKSTEP_AGREE(table, field, function) \
  static_assert(Agree<decltype(table::field), decltype(function)>())

using CudaMalloc = cudaError_t(void**, size_t);  // it has overloads
LOCKSTEP_AGREE(CudaFunctions, get_error_string, cudaGetErrorString);
LOCKSTEP_AGREE(CudaFunctions, get_last_error, cudaGetLastError);
LOCKSTEP_AGREE(CudaFunctions, get_device_count, cudaGetDeviceCount);
LOCKSTEP_AGREE(CudaFunctions, device_get_pci_bus_id, cudaDeviceGetPCIBusId);
LOCKSTEP_AGREE(CudaFunctions, get_device, cudaGetDevice);
LOCKSTEP_AGREE(CudaFunctions, set_device, cudaSetDevice);
static_assert(Agree<decltype(CudaFunctions::malloc), CudaMalloc>());
static_assert(static_cast<CudaMalloc*>(cudaMalloc) != nullptr);
LOCKSTEP_AGREE(CudaFunctions, free, cudaFree);
LOCKSTEP_AGREE(CudaFunctions, memcpy_async, cudaMemcpyAsync);
LOCKSTEP_AGREE(CudaFunctions, stream_create_with_flags,
               cudaStreamCreateWithFlags);
LOCKSTEP_AGREE(CudaFunctions, stream_destroy, cudaStreamDestroy);
LOCKSTEP_AGREE(CudaFunctions, stream_synchronize, cudaStreamSynchronize);
LOCKSTEP_AGREE(CudaFunctions, event_destroy, cudaEventDestroy);
LOCKSTEP_AGREE(CudaFunctions, event_record, cudaEventRecord);
LOCKSTEP_AGREE(CudaFunctions, event_query, cudaEventQuery);
using CudaEventCreate = cudaError_t(cudaEvent_t*, unsigned);
static_assert(
    Agree<decltype(CudaFunctions::event_create_with_flags), CudaEventCreate>());
LOCKSTEP_AGREE(NcclFunctions, get_error_string, ncclGetErrorString);
LOCKSTEP_AGREE(NcclFunctions, get_version, ncclGetVersion);
LOCKSTEP_AGREE(NcclFunctions, get_unique_id, ncclGetUniqueId);
LOCKSTEP_AGREE(NcclFunctions, comm_init_rank_config, ncclCommInitRankConfig);
LOCKSTEP_AGREE(NcclFunctions, comm_get_async_error, ncclCommGetAsyncError);
LOCKSTEP_AGREE(NcclFunctions, comm_finalize, ncclCommFinalize);
LOCKSTEP_AGREE(NcclFunctions, comm_destroy, ncclCommDestroy);
LOCKSTEP_AGREE(NcclFunctions, comm_abort, ncclCommAbort);
LOCKSTEP_AGREE(NcclFunctions, group_start, ncclGroupStart);
LOCKSTEP_AGREE(NcclFunctions, group_end, ncclGroupEnd);
LOCKSTEP_AGREE(NcclFunctions, all_gather, ncclAllGather);
LOCKSTEP_AGREE(NcclFunctions, send, ncclSend);
LOCKSTEP_AGREE(NcclFunctions, recv, ncclRecv);

#endif

}  // namespace
}  // namespace lockstep::strategy
