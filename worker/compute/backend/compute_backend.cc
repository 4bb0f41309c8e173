#include "worker/compute/backend/compute_backend.h"

#include "worker/compute/backend/operation_checks.h"

namespace lockstep {
namespace {

constexpr char kReluGradient[] = "ReluGradient";
constexpr char kCountNonFinite[] = "CountNonFinite";
constexpr char kCountCorrect[] = "CountCorrect";
constexpr char kSoftmaxCrossEntropy[] = "SoftmaxCrossEntropy";
constexpr char kAveragePoolGradient[] = "AveragePoolGradient";
constexpr char kActivateGradient[] = "ActivateGradient";
constexpr char kLayerNorm[] = "LayerNorm";
constexpr char kLayerNormGradient[] = "LayerNormGradient";
constexpr char kBatchNorm[] = "BatchNorm";
constexpr char kBatchNormGradient[] = "BatchNormGradient";
constexpr char kAttention[] = "CausalAttention";
constexpr char kAttentionGradient[] = "CausalAttentionGradient";

// The same type and shape, and memory on both sides.
absl::Status CheckCopy(const char* operation, const Argument& from,
                       const Argument& to) {
  if (absl::Status s =
          CheckIs(operation, from, to.tensor.type(), to.tensor.shape());
      !s.ok()) {
    return s;
  }
  return CheckIs(operation, to, from.tensor.type(), from.tensor.shape());
}

}  // namespace

absl::Status ComputeBackend::Upload(const ConstTensor& host,
                                    const Tensor& out) {
  const absl::Status s = CheckCopy("Upload", {"host", host}, {"out", out});
  return s.ok() ? DoUpload(host, out) : s;
}

absl::StatusOr<CopyId> ComputeBackend::StartUpload(const ConstTensor& host,
                                                   const Tensor& out) {
  const absl::Status s = CheckCopy("StartUpload", {"host", host}, {"out", out});
  if (!s.ok()) return s;
  return DoStartUpload(host, out);
}

absl::StatusOr<CopyId> ComputeBackend::StartDownload(const ConstTensor& values,
                                                     const Tensor& host) {
  const absl::Status s =
      CheckCopy("StartDownload", {"values", values}, {"host", host});
  if (!s.ok()) return s;
  return DoStartDownload(values, host);
}

absl::Status ComputeBackend::Download(const ConstTensor& values,
                                      const Tensor& host) {
  const absl::Status s =
      CheckCopy("Download", {"values", values}, {"host", host});
  return s.ok() ? DoDownload(values, host) : s;
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
                                    const Tensor& out,
                                    const Conv2DOptions& options) {
  if (absl::Status s = CheckConv2D("Conv2D", {"images", images},
                                   {"filters", filters}, {"out", out}, options);
      !s.ok()) {
    return s;
  }
  return DoConv2D(images, filters, out, options);
}

absl::Status ComputeBackend::Conv2DInputGradient(
    const ConstTensor& filters, const ConstTensor& out_gradient,
    const Tensor& images_gradient, const Conv2DOptions& options) {
  if (absl::Status s = CheckConv2D(
          "Conv2DInputGradient", {"images_gradient", images_gradient},
          {"filters", filters}, {"out_gradient", out_gradient}, options);
      !s.ok()) {
    return s;
  }
  return DoConv2DInputGradient(filters, out_gradient, images_gradient, options);
}

absl::Status ComputeBackend::Conv2DFilterGradient(
    const ConstTensor& images, const ConstTensor& out_gradient,
    const Tensor& filters_gradient, const Conv2DOptions& options) {
  if (absl::Status s = CheckConv2D("Conv2DFilterGradient", {"images", images},
                                   {"filters_gradient", filters_gradient},
                                   {"out_gradient", out_gradient}, options);
      !s.ok()) {
    return s;
  }
  return DoConv2DFilterGradient(images, out_gradient, filters_gradient,
                                options);
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

absl::Status ComputeBackend::AveragePool(const ConstTensor& in, int64_t window,
                                         const Tensor& out) {
  const absl::Status s =
      CheckAveragePool("AveragePool", {"in", in}, window, {"out", out});
  return s.ok() ? DoAveragePool(in, window, out) : s;
}

absl::Status ComputeBackend::AveragePoolGradient(
    const ConstTensor& out_gradient, int64_t window,
    const Tensor& in_gradient) {
  const absl::Status s =
      CheckAveragePool(kAveragePoolGradient, {"in_gradient", in_gradient},
                       window, {"out_gradient", out_gradient});
  return s.ok() ? DoAveragePoolGradient(out_gradient, window, in_gradient) : s;
}

absl::Status ComputeBackend::Activate(Activation kind, const ConstTensor& in,
                                      const Tensor& out) {
  const absl::Status s = CheckSame("Activate", {"in", in}, {"out", out});
  return s.ok() ? DoActivate(kind, in, out) : s;
}

absl::Status ComputeBackend::ActivateGradient(Activation kind,
                                              const ConstTensor& in,
                                              const ConstTensor& out_gradient,
                                              const Tensor& in_gradient) {
  if (absl::Status s = CheckSame(kActivateGradient, {"in", in},
                                 {"out_gradient", out_gradient});
      !s.ok()) {
    return s;
  }
  const absl::Status s =
      CheckSame(kActivateGradient, {"in", in}, {"in_gradient", in_gradient});
  return s.ok() ? DoActivateGradient(kind, in, out_gradient, in_gradient) : s;
}

absl::Status ComputeBackend::Combine(const ConstTensor& in, double a, double b,
                                     const Tensor& out) {
  const absl::Status s = CheckSame("Combine", {"in", in}, {"out", out});
  return s.ok() ? DoCombine(in, a, b, out) : s;
}

absl::Status ComputeBackend::Dropout(const ConstTensor& in,
                                     const DropoutOptions& options,
                                     const Tensor& out) {
  if (absl::Status s = CheckDropout(options); !s.ok()) return s;
  const absl::Status s = CheckSame("Dropout", {"in", in}, {"out", out});
  return s.ok() ? DoDropout(in, options, out) : s;
}

absl::Status ComputeBackend::LayerNorm(const ConstTensor& in,
                                       const ConstTensor& scale,
                                       const ConstTensor& shift, double epsilon,
                                       const Tensor& out,
                                       const Tensor& statistics) {
  if (absl::Status s = CheckPositive(kLayerNorm, "epsilon", epsilon); !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckNorm(kLayerNorm, {"in", in}, /*by_row=*/true,
                                 {"statistics", statistics},
                                 {{"scale", scale}, {"shift", shift}});
      !s.ok()) {
    return s;
  }
  const absl::Status s = CheckSame(kLayerNorm, {"in", in}, {"out", out});
  return s.ok() ? DoLayerNorm(in, scale, shift, epsilon, out, statistics) : s;
}

absl::Status ComputeBackend::LayerNormGradient(const ConstTensor& in,
                                               const ConstTensor& scale,
                                               const ConstTensor& statistics,
                                               const ConstTensor& out_gradient,
                                               const Tensor& in_gradient,
                                               const Tensor& scale_gradient,
                                               const Tensor& shift_gradient) {
  if (absl::Status s = CheckNorm(kLayerNormGradient, {"in", in},
                                 /*by_row=*/true, {"statistics", statistics},
                                 {{"scale", scale},
                                  {"scale_gradient", scale_gradient},
                                  {"shift_gradient", shift_gradient}});
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckSame(kLayerNormGradient, {"in", in},
                                 {"out_gradient", out_gradient});
      !s.ok()) {
    return s;
  }
  const absl::Status s =
      CheckSame(kLayerNormGradient, {"in", in}, {"in_gradient", in_gradient});
  return s.ok()
             ? DoLayerNormGradient(in, scale, statistics, out_gradient,
                                   in_gradient, scale_gradient, shift_gradient)
             : s;
}

absl::Status ComputeBackend::BatchStatistics(const ConstTensor& in,
                                             const Tensor& statistics) {
  const absl::Status s =
      CheckNorm("BatchStatistics", {"in", in}, /*by_row=*/false,
                {"statistics", statistics}, {});
  return s.ok() ? DoBatchStatistics(in, statistics) : s;
}

absl::Status ComputeBackend::BatchNorm(const ConstTensor& in,
                                       const ConstTensor& statistics,
                                       const ConstTensor& scale,
                                       const ConstTensor& shift, double epsilon,
                                       const Tensor& out) {
  if (absl::Status s = CheckPositive(kBatchNorm, "epsilon", epsilon); !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckNorm(kBatchNorm, {"in", in}, /*by_row=*/false,
                                 {"statistics", statistics},
                                 {{"scale", scale}, {"shift", shift}});
      !s.ok()) {
    return s;
  }
  const absl::Status s = CheckSame(kBatchNorm, {"in", in}, {"out", out});
  return s.ok() ? DoBatchNorm(in, statistics, scale, shift, epsilon, out) : s;
}

absl::Status ComputeBackend::BatchNormGradient(
    const ConstTensor& in, const ConstTensor& statistics,
    const ConstTensor& scale, double epsilon, const ConstTensor& out_gradient,
    const Tensor& in_gradient, const Tensor& scale_gradient,
    const Tensor& shift_gradient) {
  if (absl::Status s = CheckPositive(kBatchNormGradient, "epsilon", epsilon);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckNorm(kBatchNormGradient, {"in", in},
                                 /*by_row=*/false, {"statistics", statistics},
                                 {{"scale", scale},
                                  {"scale_gradient", scale_gradient},
                                  {"shift_gradient", shift_gradient}});
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckSame(kBatchNormGradient, {"in", in},
                                 {"out_gradient", out_gradient});
      !s.ok()) {
    return s;
  }
  const absl::Status s =
      CheckSame(kBatchNormGradient, {"in", in}, {"in_gradient", in_gradient});
  return s.ok()
             ? DoBatchNormGradient(in, statistics, scale, epsilon, out_gradient,
                                   in_gradient, scale_gradient, shift_gradient)
             : s;
}

absl::Status ComputeBackend::Embed(const ConstTensor& table,
                                   const ConstTensor& ids, const Tensor& out) {
  const absl::Status s =
      CheckEmbed("Embed", {"table", table}, ids, {"out", out});
  return s.ok() ? DoEmbed(table, ids, out) : s;
}

absl::Status ComputeBackend::EmbedGradient(const ConstTensor& ids,
                                           const ConstTensor& out_gradient,
                                           const Tensor& table_gradient) {
  const absl::Status s =
      CheckEmbed("EmbedGradient", {"table_gradient", table_gradient}, ids,
                 {"out_gradient", out_gradient});
  return s.ok() ? DoEmbedGradient(ids, out_gradient, table_gradient) : s;
}

absl::Status ComputeBackend::CausalAttention(const ConstTensor& qkv,
                                             int64_t heads, const Tensor& out,
                                             const Tensor& probabilities) {
  const absl::Status s =
      CheckAttention(kAttention, {"qkv", qkv}, heads, {"out", out},
                     {"probabilities", probabilities});
  return s.ok() ? DoCausalAttention(qkv, heads, out, probabilities) : s;
}

absl::Status ComputeBackend::CausalAttentionGradient(
    const ConstTensor& qkv, int64_t heads, const ConstTensor& probabilities,
    const ConstTensor& out_gradient, const Tensor& qkv_gradient) {
  if (absl::Status s = CheckAttention(kAttentionGradient, {"qkv", qkv}, heads,
                                      {"out_gradient", out_gradient},
                                      {"probabilities", probabilities});
      !s.ok()) {
    return s;
  }
  const absl::Status s = CheckSame(kAttentionGradient, {"qkv", qkv},
                                   {"qkv_gradient", qkv_gradient});
  return s.ok() ? DoCausalAttentionGradient(qkv, heads, probabilities,
                                            out_gradient, qkv_gradient)
                : s;
}

absl::Status ComputeBackend::CountNonFinite(const ConstTensor& values,
                                            const Tensor& count) {
  if (absl::Status s =
          CheckFloats(kCountNonFinite, {"values", values}, values.rank());
      !s.ok()) {
    return s;
  }
  const absl::Status s = CheckNumber(kCountNonFinite, {"count", count});
  return s.ok() ? DoCountNonFinite(values, count) : s;
}

absl::Status ComputeBackend::SoftmaxCrossEntropy(
    const ConstTensor& logits, const ConstTensor& labels, const Tensor& loss,
    const Tensor& logits_gradient) {
  if (absl::Status s = CheckLabels(kSoftmaxCrossEntropy, logits, labels);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckNumber(kSoftmaxCrossEntropy, {"loss", loss});
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckSame(kSoftmaxCrossEntropy, {"logits", logits},
                                 {"logits_gradient", logits_gradient});
      !s.ok()) {
    return s;
  }
  return DoSoftmaxCrossEntropy(logits, labels, loss, logits_gradient);
}

absl::Status ComputeBackend::CountCorrect(const ConstTensor& logits,
                                          const ConstTensor& labels,
                                          const Tensor& count) {
  if (absl::Status s = CheckLabels(kCountCorrect, logits, labels); !s.ok()) {
    return s;
  }
  const absl::Status s = CheckNumber(kCountCorrect, {"count", count});
  return s.ok() ? DoCountCorrect(logits, labels, count) : s;
}

}  // namespace lockstep
