#ifndef LOCKSTEP_STRATEGY_NCCL_NCCL_API_H_
#define LOCKSTEP_STRATEGY_NCCL_NCCL_API_H_

#include <climits>
#include <cstddef>

// The parts of NCCL and of the CUDA runtime that NcclGroup uses, under names of
// our own, so that no header of NVIDIA is needed. Values and layouts are
// theirs: they are part of the libraries' binary interface, and must not be
// changed.
namespace lockstep::strategy {

// cudaError_t. CUDA passes enums as int.
using CudaResult = int;
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaErrorMemoryAllocation = 2;
inline constexpr CudaResult kCudaErrorNotReady = 600;

// cudaMemcpyKind.
inline constexpr int kCudaHostToDevice = 1;
inline constexpr int kCudaDeviceToHost = 2;

inline constexpr unsigned kCudaStreamNonBlocking = 1;
inline constexpr unsigned kCudaEventDisableTiming = 2;

using CudaStream = struct CudaStreamHandle*;
using CudaEvent = struct CudaEventHandle*;

// ncclResult_t.
using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclUnhandledCudaError = 1;
inline constexpr NcclResult kNcclSystemError = 2;
inline constexpr NcclResult kNcclInternalError = 3;
inline constexpr NcclResult kNcclInvalidArgument = 4;
inline constexpr NcclResult kNcclInvalidUsage = 5;
inline constexpr NcclResult kNcclRemoteError = 6;
inline constexpr NcclResult kNcclInProgress = 7;

// ncclDataType_t.
inline constexpr int kNcclUint8 = 1;

using NcclComm = struct NcclCommHandle*;

// ncclUniqueId, which is passed by value.
struct NcclUniqueId {
  char internal[128];
};

// ncclConfig_t of NCCL 2.14. Newer releases take this length and version, and
// set the fields that they have added to their defaults.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int undefined = INT_MIN;  // padding; a field of NCCL 2.17
};
static_assert(sizeof(NcclConfig) == 24);

// The oldest release with non-blocking communicators.
inline constexpr int kOldestNccl = 21400;

// Loaded is a function of a library that was opened at run time.
template <typename Signature>
class Loaded;
template <typename R, typename... A>
class Loaded<R(A...)> {
 public:
  using Signature = R(A...);

  void Bind(void* address) {
    function_ = reinterpret_cast<Signature*>(address);
  }
  // Must be bound. The definition names its types differently, which the
  // sanitizer would report.
  __attribute__((no_sanitize("undefined"))) R operator()(A... a) const {
    return function_(a...);
  }

 private:
  Signature* function_ = nullptr;
};

// Functions of libcudart, e.g. cudaGetDeviceCount().
struct CudaFunctions {
  Loaded<const char*(CudaResult)> get_error_string;
  Loaded<CudaResult()> get_last_error;
  Loaded<CudaResult(int* count)> get_device_count;
  Loaded<CudaResult(char* id, int bytes, int device)> device_get_pci_bus_id;
  Loaded<CudaResult(int* device)> get_device;
  Loaded<CudaResult(int device)> set_device;
  Loaded<CudaResult(void** data, size_t bytes)> malloc;
  Loaded<CudaResult(void* data)> free;
  Loaded<CudaResult(void* to, const void* from, size_t bytes, int kind,
                    CudaStream)>
      memcpy_async;
  Loaded<CudaResult(CudaStream*, unsigned flags)> stream_create_with_flags;
  Loaded<CudaResult(CudaStream)> stream_destroy;
  Loaded<CudaResult(CudaStream)> stream_synchronize;
  Loaded<CudaResult(CudaEvent*, unsigned flags)> event_create_with_flags;
  Loaded<CudaResult(CudaEvent)> event_destroy;
  Loaded<CudaResult(CudaEvent, CudaStream)> event_record;
  Loaded<CudaResult(CudaEvent)> event_query;
};

// Functions of libnccl, e.g. ncclGetVersion().
struct NcclFunctions {
  Loaded<const char*(NcclResult)> get_error_string;
  Loaded<NcclResult(int* version)> get_version;
  Loaded<NcclResult(NcclUniqueId*)> get_unique_id;
  Loaded<NcclResult(NcclComm*, int members, NcclUniqueId, int rank,
                    NcclConfig*)>
      comm_init_rank_config;
  Loaded<NcclResult(NcclComm, NcclResult* error)> comm_get_async_error;
  Loaded<NcclResult(NcclComm)> comm_finalize;
  Loaded<NcclResult(NcclComm)> comm_destroy;
  Loaded<NcclResult(NcclComm)> comm_abort;
  Loaded<NcclResult()> group_start;
  Loaded<NcclResult()> group_end;
  Loaded<NcclResult(const void* from, void* to, size_t count, int type,
                    NcclComm, CudaStream)>
      all_gather;
  Loaded<NcclResult(const void* from, size_t count, int type, int peer,
                    NcclComm, CudaStream)>
      send;
  Loaded<NcclResult(void* to, size_t count, int type, int peer, NcclComm,
                    CudaStream)>
      recv;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_NCCL_API_H_
