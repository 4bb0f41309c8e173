#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_H_

#include <utility>

#include "worker/compute/backend/kernel_backend_attention.h"

namespace lockstep::worker {

// KernelBackend implements every operation by a few functions of a Device, so
// that the arithmetic, its order and its memory are written once. Each family
// of operations is a base class of its own, one on top of the other, and each
// operation checks its arguments before it calls the device.
//
//   ForEach(op, n, f)               the values of f, see kernels/elementwise.h
//   Grid(op, rows, n, f)            the values of f(row, column)
//   Rows(op, rows, f)               f(group, row), see kernels/rows.h
//   SumColumns(op, rows, n, f, out) out[column] = sum of f(row, column)
//   Gemm(op, gemm, a, b, out)       see kernels/strided_gemm.h
//   Copy(op, from, to, bytes)       complete on return
//   StartCopy(op, from, to, bytes)  returns a CopyId
//   Allocate, Pin, UseCopy, CopyIsDone, FinishCopy
//                                   as in ComputeBackend
//   kUsesOrdinaryMemory             as ComputeBackend::UsesOrdinaryMemory()
//   kHasOwnLoops                    true: the device also has PatchElements(),
//                                   the three Conv2D...(), MaxPool2x2(),
//                                   MaxPool2x2Gradient() and EmbedGradient(),
//                                   which take the kernels' place: see
//                                   cpu/cpu_device.h
//   kHasFusedAttention              true: the device also has FusesAttention(),
//                                   Attention() and AttentionGradient(): see
//                                   cuda/cuda_device.h
//
// Each returns a Status; `op` names the operation in it. `f` is one of the
// functions in kernels/. Calls take effect in order. Empty ranges are legal.
//
// A derived class adds the name, and all that is special about its device.
//
// Threads: as ComputeBackend. Scratch memory of an operation is used again by
//          the next one, which is safe because calls take effect in order.
template <typename Device>
class KernelBackend : public KernelAttention<Device> {
 protected:
  explicit KernelBackend(Device device)
      : KernelAttention<Device>(std::move(device)) {}

  Device& device() { return this->device_; }
  const Device& device() const { return this->device_; }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_H_
