#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_CPU_DEVICE_H_

#include <algorithm>
#include <cstdint>

#include "worker/compute/cpu/conv2d.h"
#include "worker/compute/cpu/max_pool.h"
#include "worker/compute/cpu/serial_device.h"
#include "worker/compute/kernels/image_shapes.h"

namespace lockstep::worker::cpu {

// CpuDevice is a SerialDevice with loops of its own for the operations that a
// processor does better than one element at a time. They add in the same order
// as the kernels, except products of matrices, whose order is OpenBLAS's.
//
// Threads: as ComputeBackend.
// Units:   lengths in elements; T is float or double.
class CpuDevice final : public SerialDevice {
 public:
  static constexpr bool kHasOwnLoops = true;

  static int64_t PatchElements(const ConvShape& shape) {
    return cpu::PatchElements(shape);
  }
  // `patches` is scratch memory of PatchElements().
  template <typename T>
  static void Conv2D(const ConvShape& shape, const T* images, const T* filters,
                     T* patches, T* out) {
    cpu::Conv2D(shape, images, filters, patches, out);
  }
  template <typename T>
  static void Conv2DInputGradient(const ConvShape& shape, const T* filters,
                                  const T* out_gradient, T* patches,
                                  T* images_gradient) {
    cpu::Conv2DInputGradient(shape, filters, out_gradient, patches,
                             images_gradient);
  }
  template <typename T>
  static void Conv2DFilterGradient(const ConvShape& shape, const T* images,
                                   const T* out_gradient, T* patches,
                                   T* filters_gradient) {
    cpu::Conv2DFilterGradient(shape, images, out_gradient, patches,
                              filters_gradient);
  }

  template <typename T>
  static void MaxPool2x2(const PoolShape& shape, const T* in, T* out,
                         uint8_t* argmax) {
    cpu::MaxPool2x2(shape, in, out, argmax);
  }
  template <typename T>
  static void MaxPool2x2Gradient(const PoolShape& shape, const uint8_t* argmax,
                                 const T* out_gradient, T* in_gradient) {
    cpu::MaxPool2x2Gradient(shape, argmax, out_gradient, in_gradient);
  }

  // Overwrites `table`, of `size` elements in rows of `n`, with the sums of
  // `count` rows of `n` by id, in the order of the batch, as the kernel does.
  template <typename T>
  static void EmbedGradient(const int32_t* ids, int64_t count, int64_t n,
                            const T* out_gradient, int64_t size, T* table) {
    std::fill_n(table, size, T{0});
    for (int64_t k = 0; k < count; ++k) {
      T* row = table + ids[k] * n;
      for (int64_t i = 0; i < n; ++i) row[i] += out_gradient[i];
      out_gradient += n;
    }
  }
};

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
