#include "worker/compute/cuda/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker::cuda {
namespace {

std::string Where(const CallSite& site) {
  return absl::StrCat(site.operation, ": ", site.call, " on ", site.device,
                      ": ");
}

}  // namespace

// These errors are sticky: each later call in this process returns them.
bool IsLost(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorDevicesUnavailable:
    case cudaErrorContained:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

absl::Status ToStatus(cudaError_t error, const CallSite& site) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Removes the error from CUDA's record, so that a later call does not report
  // it again.
  Ignore(error);
  const std::string message = absl::StrCat(Where(site), cudaGetErrorName(error),
                                           ", ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) {
    return absl::ResourceExhaustedError(message);
  }
  if (IsLost(error)) {
    return absl::UnavailableError(absl::StrCat(
        message, "; the device is lost to this process, start it again"));
  }
  return absl::InternalError(message);
}

absl::Status ToStatus(cublasStatus_t error, const CallSite& site) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat(Where(site), cublasGetStatusName(error), ", ",
                   cublasGetStatusString(error));
  // cuBLAS may report the failure of an earlier kernel, whose error has the
  // cause.
  const cudaError_t cause = cudaGetLastError();
  if (error == CUBLAS_STATUS_ALLOC_FAILED) {
    return absl::ResourceExhaustedError(message);
  }
  if (IsLost(cause)) return ToStatus(cause, site);
  return absl::InternalError(message);
}

void Ignore(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
}

absl::Status OutOfMemory(size_t asked, size_t free, size_t total,
                         const std::string& device) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "no memory for ", asked, " bytes on ", device,
      total > 0 ? absl::StrCat(": ", free, " of ", total, " are free") : "",
      "; make batch_size smaller, or micro_batches larger"));
}

}  // namespace lockstep::worker::cuda
