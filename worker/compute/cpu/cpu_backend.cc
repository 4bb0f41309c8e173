#include "worker/compute/cpu/cpu_backend.h"

#include <cblas.h>

#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "worker/compute/cpu/conv2d.h"
#include "worker/compute/cpu/elementwise.h"
#include "worker/compute/cpu/gemm.h"
#include "worker/compute/cpu/max_pool.h"
#include "worker/compute/cpu/softmax.h"

namespace lockstep {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::align_val_t kAlignment{64};
constexpr size_t kMaxBytes = size_t{1} << 40;

void Release(void* data) { ::operator delete(data, kAlignment); }

// Calls function(float{}) or function(double{}), by what the tensors hold.
template <typename Function>
auto ForType(ElementType type, Function function) {
  return type == ElementType::kFloat64 ? function(double{}) : function(float{});
}

int64_t RowsOf(const ConstTensor& tensor) {
  const int64_t n = tensor.shape().back();
  return n == 0 ? 0 : tensor.size() / n;
}

cpu::ConvShape ConvShapeOf(const ConstTensor& images,
                           const ConstTensor& filters) {
  return {.images = images.dim(0),
          .height = images.dim(1),
          .width = images.dim(2),
          .channels = images.dim(3),
          .kernel_height = filters.dim(0),
          .kernel_width = filters.dim(1),
          .filters = filters.dim(3)};
}

cpu::PoolShape PoolShapeOf(const ConstTensor& in) {
  return {in.dim(0), in.dim(1), in.dim(2), in.dim(3)};
}

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

absl::Status CpuBackend::DoMatMul(const ConstTensor& a, const ConstTensor& b,
                                  const MatMulOptions& options,
                                  const Tensor& out) {
  const cpu::GemmShape shape = {.m = out.dim(0),
                                .n = out.dim(1),
                                .k = a.dim(options.transpose_a ? 0 : 1),
                                .transpose_a = options.transpose_a,
                                .transpose_b = options.transpose_b};
  ForType(out.type(), [&]<typename T>(T) {
    cpu::Gemm(shape, a.data<T>(), b.data<T>(), options.accumulate,
              out.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoAddBias(const ConstTensor& bias,
                                   const Tensor& values) {
  ForType(values.type(), [&]<typename T>(T) {
    cpu::AddBias(RowsOf(values), bias.dim(0), bias.data<T>(), values.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoBiasGradient(const ConstTensor& out_gradient,
                                        const Tensor& bias_gradient) {
  ForType(bias_gradient.type(), [&]<typename T>(T) {
    cpu::BiasGradient(RowsOf(out_gradient), bias_gradient.dim(0),
                      out_gradient.data<T>(), bias_gradient.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoRelu(const ConstTensor& in, const Tensor& out) {
  ForType(in.type(), [&]<typename T>(T) {
    cpu::Relu(in.size(), in.data<T>(), out.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoReluGradient(const ConstTensor& out,
                                        const ConstTensor& out_gradient,
                                        const Tensor& in_gradient) {
  ForType(out.type(), [&]<typename T>(T) {
    cpu::ReluGradient(out.size(), out.data<T>(), out_gradient.data<T>(),
                      in_gradient.data<T>());
  });
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CpuBackend::Patches(const cpu::ConvShape& shape,
                                           ElementType type) {
  return patches_.Reserve(*this, type, {cpu::PatchElements(shape)});
}

absl::Status CpuBackend::DoConv2D(const ConstTensor& images,
                                  const ConstTensor& filters,
                                  const Tensor& out) {
  const cpu::ConvShape shape = ConvShapeOf(images, filters);
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
                                               const Tensor& images_gradient) {
  const cpu::ConvShape shape = ConvShapeOf(images_gradient, filters);
  absl::StatusOr<Tensor> patches = Patches(shape, filters.type());
  if (!patches.ok()) return patches.status();
  ForType(filters.type(), [&]<typename T>(T) {
    cpu::Conv2DInputGradient(shape, filters.data<T>(), out_gradient.data<T>(),
                             patches->data<T>(), images_gradient.data<T>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoConv2DFilterGradient(
    const ConstTensor& images, const ConstTensor& out_gradient,
    const Tensor& filters_gradient) {
  const cpu::ConvShape shape = ConvShapeOf(images, filters_gradient);
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
    cpu::MaxPool2x2(PoolShapeOf(in), in.data<T>(), out.data<T>(),
                    argmax.data<uint8_t>());
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::DoMaxPool2x2Gradient(const ConstTensor& argmax,
                                              const ConstTensor& out_gradient,
                                              const Tensor& in_gradient) {
  ForType(out_gradient.type(), [&]<typename T>(T) {
    cpu::MaxPool2x2Gradient(PoolShapeOf(in_gradient), argmax.data<uint8_t>(),
                            out_gradient.data<T>(), in_gradient.data<T>());
  });
  return absl::OkStatus();
}

absl::StatusOr<double> CpuBackend::DoSoftmaxCrossEntropy(
    const ConstTensor& logits, absl::Span<const int32_t> labels,
    const Tensor& logits_gradient) {
  return ForType(logits.type(), [&]<typename T>(T) {
    return cpu::SoftmaxCrossEntropy(logits.dim(0), logits.dim(1),
                                    logits.data<T>(), labels.data(),
                                    logits_gradient.data<T>());
  });
}

absl::StatusOr<int64_t> CpuBackend::DoCountCorrect(
    const ConstTensor& logits, absl::Span<const int32_t> labels) {
  return ForType(logits.type(), [&]<typename T>(T) {
    return cpu::CountCorrect(logits.dim(0), logits.dim(1), logits.data<T>(),
                             labels.data());
  });
}

}  // namespace lockstep
