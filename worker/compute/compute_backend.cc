#include "worker/compute/compute_backend.h"

#include "worker/compute/operation_checks.h"

namespace lockstep {
namespace {

constexpr char kReluGradient[] = "ReluGradient";
constexpr char kSoftmaxCrossEntropy[] = "SoftmaxCrossEntropy";

}  // namespace

absl::Status ComputeBackend::Upload(const ConstTensor& host,
                                    const Tensor& out) {
  if (absl::Status s =
          CheckIs("Upload", {"host", host}, out.type(), out.shape());
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          CheckIs("Upload", {"out", out}, host.type(), host.shape());
      !s.ok()) {
    return s;
  }
  return DoUpload(host, out);
}

absl::Status ComputeBackend::Download(const ConstTensor& values,
                                      const Tensor& host) {
  if (absl::Status s =
          CheckIs("Download", {"values", values}, host.type(), host.shape());
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          CheckIs("Download", {"host", host}, values.type(), values.shape());
      !s.ok()) {
    return s;
  }
  return DoDownload(values, host);
}

absl::Status ComputeBackend::MatMul(const ConstTensor& a, const ConstTensor& b,
                                    const MatMulOptions& options,
                                    const Tensor& out) {
  if (absl::Status s = CheckMatMul(a, b, options, out); !s.ok()) return s;
  return DoMatMul(a, b, options, out);
}

absl::Status ComputeBackend::AddBias(const ConstTensor& bias,
                                     const Tensor& values) {
  if (absl::Status s = CheckBias("AddBias", {"values", values}, {"bias", bias});
      !s.ok()) {
    return s;
  }
  return DoAddBias(bias, values);
}

absl::Status ComputeBackend::BiasGradient(const ConstTensor& out_gradient,
                                          const Tensor& bias_gradient) {
  if (absl::Status s = CheckBias("BiasGradient", {"out_gradient", out_gradient},
                                 {"bias_gradient", bias_gradient});
      !s.ok()) {
    return s;
  }
  return DoBiasGradient(out_gradient, bias_gradient);
}

absl::Status ComputeBackend::Relu(const ConstTensor& in, const Tensor& out) {
  if (absl::Status s = CheckSame("Relu", {"in", in}, {"out", out}); !s.ok()) {
    return s;
  }
  return DoRelu(in, out);
}

absl::Status ComputeBackend::ReluGradient(const ConstTensor& out,
                                          const ConstTensor& out_gradient,
                                          const Tensor& in_gradient) {
  if (absl::Status s = CheckSame(kReluGradient, {"out", out},
                                 {"out_gradient", out_gradient});
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          CheckSame(kReluGradient, {"out", out}, {"in_gradient", in_gradient});
      !s.ok()) {
    return s;
  }
  return DoReluGradient(out, out_gradient, in_gradient);
}

absl::Status ComputeBackend::Conv2D(const ConstTensor& images,
                                    const ConstTensor& filters,
                                    const Tensor& out) {
  if (absl::Status s = CheckConv2D("Conv2D", {"images", images},
                                   {"filters", filters}, {"out", out});
      !s.ok()) {
    return s;
  }
  return DoConv2D(images, filters, out);
}

absl::Status ComputeBackend::Conv2DInputGradient(
    const ConstTensor& filters, const ConstTensor& out_gradient,
    const Tensor& images_gradient) {
  if (absl::Status s = CheckConv2D(
          "Conv2DInputGradient", {"images_gradient", images_gradient},
          {"filters", filters}, {"out_gradient", out_gradient});
      !s.ok()) {
    return s;
  }
  return DoConv2DInputGradient(filters, out_gradient, images_gradient);
}

absl::Status ComputeBackend::Conv2DFilterGradient(
    const ConstTensor& images, const ConstTensor& out_gradient,
    const Tensor& filters_gradient) {
  if (absl::Status s = CheckConv2D("Conv2DFilterGradient", {"images", images},
                                   {"filters_gradient", filters_gradient},
                                   {"out_gradient", out_gradient});
      !s.ok()) {
    return s;
  }
  return DoConv2DFilterGradient(images, out_gradient, filters_gradient);
}

absl::Status ComputeBackend::MaxPool2x2(const ConstTensor& in,
                                        const Tensor& out,
                                        const Tensor& argmax) {
  if (absl::Status s = CheckMaxPool2x2("MaxPool2x2", {"in", in}, {"out", out},
                                       {"argmax", argmax});
      !s.ok()) {
    return s;
  }
  return DoMaxPool2x2(in, out, argmax);
}

absl::Status ComputeBackend::MaxPool2x2Gradient(const ConstTensor& argmax,
                                                const ConstTensor& out_gradient,
                                                const Tensor& in_gradient) {
  if (absl::Status s =
          CheckMaxPool2x2("MaxPool2x2Gradient", {"in_gradient", in_gradient},
                          {"out_gradient", out_gradient}, {"argmax", argmax});
      !s.ok()) {
    return s;
  }
  return DoMaxPool2x2Gradient(argmax, out_gradient, in_gradient);
}

absl::StatusOr<double> ComputeBackend::SoftmaxCrossEntropy(
    const ConstTensor& logits, absl::Span<const int32_t> labels,
    const Tensor& logits_gradient) {
  if (absl::Status s = CheckLabels(kSoftmaxCrossEntropy, logits, labels);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckSame(kSoftmaxCrossEntropy, {"logits", logits},
                                 {"logits_gradient", logits_gradient});
      !s.ok()) {
    return s;
  }
  return DoSoftmaxCrossEntropy(logits, labels, logits_gradient);
}

absl::StatusOr<int64_t> ComputeBackend::CountCorrect(
    const ConstTensor& logits, absl::Span<const int32_t> labels) {
  if (absl::Status s = CheckLabels("CountCorrect", logits, labels); !s.ok()) {
    return s;
  }
  return DoCountCorrect(logits, labels);
}

}  // namespace lockstep
