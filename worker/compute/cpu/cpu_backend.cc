#include "worker/compute/cpu/cpu_backend.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "worker/compute/backend/kernel_backend_operations.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/cpu/conv2d.h"
#include "worker/compute/cpu/max_pool.h"

namespace lockstep {

template class KernelBackend<cpu::SerialDevice>;

namespace {

using kernel_backend::ForType;

constexpr int kMaxThreads = 1024;
constexpr std::align_val_t kAlignment{64};
constexpr size_t kMaxBytes = size_t{1} << 40;

void Release(void* data) { ::operator delete(data, kAlignment); }

absl::Status Copy(const ConstTensor& from, const Tensor& to) {
  if (from.bytes() > 0) std::memmove(to.raw(), from.raw(), from.bytes());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuBackend>> CpuBackend::Make(
    const Options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads of the cpu backend must be in [0, ", kMaxThreads,
                     "], got ", options.threads));
  }
  if (options.threads > 0) openblas_set_num_threads(options.threads);
  return std::unique_ptr<CpuBackend>(new CpuBackend);
}

absl::StatusOr<Buffer> CpuBackend::Allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  void* data = bytes > kMaxBytes
                   ? nullptr
                   : ::operator new(bytes, kAlignment, std::nothrow);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a tensor of ", bytes, " bytes"));
  }
  return Buffer(data, bytes, Release);
}

absl::Status CpuBackend::DoUpload(const ConstTensor& host, const Tensor& out) {
  return Copy(host, out);
}

absl::Status CpuBackend::DoDownload(const ConstTensor& values,
                                    const Tensor& host) {
  return Copy(values, host);
}

absl::StatusOr<CopyId> CpuBackend::DoStartUpload(const ConstTensor& host,
                                                 const Tensor& out) {
  if (absl::Status s = Copy(host, out); !s.ok()) return s;
  return CopyId{0};
}

absl::StatusOr<CopyId> CpuBackend::DoStartDownload(const ConstTensor& values,
                                                   const Tensor& host) {
  return DoStartUpload(values, host);
}

absl::StatusOr<Tensor> CpuBackend::Patches(const ConvShape& shape,
                                           ElementType type) {
  return patches_.Reserve(*this, type, {cpu::PatchElements(shape)});
}

absl::Status CpuBackend::DoConv2D(const ConstTensor& images,
                                  const ConstTensor& filters, const Tensor& out,
                                  const Conv2DOptions& options) {
  const ConvShape shape = MakeConvShape(images, filters, options);
  absl::StatusOr<Tensor> patches = Patches(shape, images.type());
  if (!patches.ok()) return patches.status();
  ForType(images.type(), [&]<typename T>(T) {
    cpu::Conv2D(shape, images.data<T>(), filters.data<T>(), patches->data<T>(),
                out.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoConv2DInputGradient(const ConstTensor& filters,
                                               const ConstTensor& out_gradient,
                                               const Tensor& images_gradient,
                                               const Conv2DOptions& options) {
  const ConvShape shape = MakeConvShape(images_gradient, filters, options);
  absl::StatusOr<Tensor> patches = Patches(shape, filters.type());
  if (!patches.ok()) return patches.status();
  ForType(filters.type(), [&]<typename T>(T) {
    cpu::Conv2DInputGradient(shape, filters.data<T>(), out_gradient.data<T>(),
                             patches->data<T>(), images_gradient.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoConv2DFilterGradient(const ConstTensor& images,
                                                const ConstTensor& out_gradient,
                                                const Tensor& filters_gradient,
                                                const Conv2DOptions& options) {
  const ConvShape shape = MakeConvShape(images, filters_gradient, options);
  absl::StatusOr<Tensor> patches = Patches(shape, images.type());
  if (!patches.ok()) return patches.status();
  ForType(images.type(), [&]<typename T>(T) {
    cpu::Conv2DFilterGradient(shape, images.data<T>(), out_gradient.data<T>(),
                              patches->data<T>(), filters_gradient.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoMaxPool2x2(const ConstTensor& in, const Tensor& out,
                                      const Tensor& argmax) {
  ForType(in.type(), [&]<typename T>(T) {
    cpu::MaxPool2x2(kernel_backend::PoolShapeOf(in, 2), in.data<T>(),
                    out.data<T>(), argmax.data<uint8_t>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoMaxPool2x2Gradient(const ConstTensor& argmax,
                                              const ConstTensor& out_gradient,
                                              const Tensor& in_gradient) {
  ForType(out_gradient.type(), [&]<typename T>(T) {
    cpu::MaxPool2x2Gradient(kernel_backend::PoolShapeOf(in_gradient, 2),
                            argmax.data<uint8_t>(), out_gradient.data<T>(),
                            in_gradient.data<T>());
  });
  return absl::OkStatus();
}

// In the order of the batch, as the kernel sums it.
absl::Status CpuBackend::DoEmbedGradient(const ConstTensor& ids,
                                         const ConstTensor& out_gradient,
                                         const Tensor& table_gradient) {
  ForType(table_gradient.type(), [&]<typename T>(T) {
    const int64_t n = table_gradient.dim(1);
    std::fill_n(table_gradient.data<T>(), table_gradient.size(), T{0});
    const T* from = out_gradient.data<T>();
    const int32_t* numbers = ids.data<int32_t>();
    for (int64_t row_of = 0; row_of < ids.size(); ++row_of) {
      T* row = table_gradient.data<T>() + numbers[row_of] * n;
      for (int64_t i = 0; i < n; ++i) row[i] += from[i];
      from += n;
    }
  });
  return absl::OkStatus();
}

}  // namespace lockstep
