#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_OPERATIONS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_OPERATIONS_H_

#include "worker/compute/backend/kernel_backend_attention.h"  // IWYU pragma: export
#include "worker/compute/backend/kernel_backend_elements.h"  // IWYU pragma: export
#include "worker/compute/backend/kernel_backend_images.h"  // IWYU pragma: export
#include "worker/compute/backend/kernel_backend_rows.h"  // IWYU pragma: export

// The members of KernelBackend, for the sources of backends. Their arguments
// have been checked by ComputeBackend.
#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_OPERATIONS_H_
