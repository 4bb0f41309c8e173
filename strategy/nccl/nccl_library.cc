#include "strategy/nccl/nccl_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

// Binds functions of one library.
class Binder {
 public:
  // `fix` ends the messages.
  static absl::StatusOr<Binder> Open(const std::vector<std::string>& names,
                                     const std::string& fix) {
    std::string reason;
    for (const std::string& name : names) {
      // Never closed: the bound functions must stay valid.
      void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) return Binder(library, name, fix);
      const char* error = dlerror();
      // The first name is the preferred one, so its error is told.
      if (reason.empty() && error != nullptr) reason = error;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        absl::StrJoin(names, ", "), " cannot be loaded (", reason, "); ", fix));
  }

  template <typename Signature>
  void Bind(const char* function, Loaded<Signature>& loaded) {
    void* address = dlsym(library_, function);
    if (address == nullptr && missing_.empty()) missing_ = function;
    loaded.Bind(address);
  }

  absl::Status Result() const {
    if (missing_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(name_, " has no function ", missing_, "; ", fix_));
  }

 private:
  Binder(void* library, const std::string& name, const std::string& fix)
      : library_(library), name_(name), fix_(fix) {}

  void* library_;
  std::string name_;
  std::string fix_;
  std::string missing_;  // the first
};

}  // namespace

absl::StatusOr<CudaFunctions> LoadCuda(const std::vector<std::string>& names) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      Binder library,
      Binder::Open(names,
                   "install the CUDA runtime 11 or newer, or add its folder to "
                   "LD_LIBRARY_PATH"));
  CudaFunctions cuda;
  library.Bind("cudaGetErrorString", cuda.get_error_string);
  library.Bind("cudaGetLastError", cuda.get_last_error);
  library.Bind("cudaGetDeviceCount", cuda.get_device_count);
  library.Bind("cudaDeviceGetPCIBusId", cuda.device_get_pci_bus_id);
  library.Bind("cudaGetDevice", cuda.get_device);
  library.Bind("cudaSetDevice", cuda.set_device);
  library.Bind("cudaMalloc", cuda.malloc);
  library.Bind("cudaFree", cuda.free);
  library.Bind("cudaMemcpyAsync", cuda.memcpy_async);
  library.Bind("cudaStreamCreateWithFlags", cuda.stream_create_with_flags);
  library.Bind("cudaStreamDestroy", cuda.stream_destroy);
  library.Bind("cudaStreamSynchronize", cuda.stream_synchronize);
  library.Bind("cudaEventCreateWithFlags", cuda.event_create_with_flags);
  library.Bind("cudaEventDestroy", cuda.event_destroy);
  library.Bind("cudaEventRecord", cuda.event_record);
  library.Bind("cudaEventQuery", cuda.event_query);
  LOCKSTEP_RETURN_IF_ERROR(library.Result());
  return cuda;
}

absl::StatusOr<NcclFunctions> LoadNccl(const std::vector<std::string>& names) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      Binder library,
      Binder::Open(names,
                   "install NCCL 2.14 or newer, or add its folder to "
                   "LD_LIBRARY_PATH"));
  NcclFunctions nccl;
  library.Bind("ncclGetErrorString", nccl.get_error_string);
  library.Bind("ncclGetVersion", nccl.get_version);
  library.Bind("ncclGetUniqueId", nccl.get_unique_id);
  library.Bind("ncclCommInitRankConfig", nccl.comm_init_rank_config);
  library.Bind("ncclCommGetAsyncError", nccl.comm_get_async_error);
  library.Bind("ncclCommFinalize", nccl.comm_finalize);
  library.Bind("ncclCommDestroy", nccl.comm_destroy);
  library.Bind("ncclCommAbort", nccl.comm_abort);
  library.Bind("ncclGroupStart", nccl.group_start);
  library.Bind("ncclGroupEnd", nccl.group_end);
  library.Bind("ncclAllGather", nccl.all_gather);
  library.Bind("ncclSend", nccl.send);
  library.Bind("ncclRecv", nccl.recv);
  LOCKSTEP_RETURN_IF_ERROR(library.Result());
  return nccl;
}

absl::Status ToStatus(const CudaFunctions& cuda, const std::string& call,
                      CudaResult result) {
  if (result == kCudaSuccess) return absl::OkStatus();
  const std::string text =
      absl::StrCat(call, ": ", cuda.get_error_string(result));
  return result == kCudaErrorMemoryAllocation
             ? absl::ResourceExhaustedError(text)
             : absl::InternalError(text);
}

absl::Status ToStatus(const NcclFunctions& nccl, const std::string& call,
                      NcclResult result) {
  // Communicators are non-blocking: a call that goes on has not failed.
  if (result == kNcclSuccess || result == kNcclInProgress) {
    return absl::OkStatus();
  }
  const std::string text =
      absl::StrCat(call, ": ", nccl.get_error_string(result));
  // The two errors of a network that fails or a member that has ended; the
  // others are mistakes or defects here.
  return result == kNcclSystemError || result == kNcclRemoteError
             ? absl::AbortedError(text)
             : absl::InternalError(text);
}

}  // namespace lockstep::strategy
