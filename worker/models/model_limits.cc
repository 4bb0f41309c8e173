#include "worker/models/model_limits.h"

#include <tuple>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

// The limits keep products of sizes within 64 bits; real models are far below.
constexpr int64_t kMaxSide = 1 << 16;
constexpr int64_t kMaxChannels = 1 << 12;
constexpr int64_t kMaxClasses = 1 << 20;
constexpr int64_t kMaxLayerSize = 1 << 20;
constexpr int64_t kMaxKernelSize = 63;
constexpr size_t kMaxLayers = 64;

absl::Status CheckRange(const char* name, int64_t value, int64_t largest) {
  if (value >= 1 && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be in [1, ", largest, "], got ", value));
}

}  // namespace

absl::Status CheckModelInput(const ModelInput& input) {
  for (const auto& [name, value, largest] :
       {std::tuple("height of the images", input.height, kMaxSide),
        std::tuple("width of the images", input.width, kMaxSide),
        std::tuple("channels of the images", input.channels, kMaxChannels),
        std::tuple("number of classes", input.classes, kMaxClasses)}) {
    if (absl::Status s = CheckRange(name, value, largest); !s.ok()) return s;
  }
  // 0 means pictures, which CheckRange() would refuse.
  if (input.tokens < 0 || input.tokens > kMaxSide) {
    return CheckRange("positions of a text", input.tokens, kMaxSide);
  }
  // Within the limits above, the product cannot overflow 64 bits.
  return CheckRange("height * width * channels of the images", input.elements(),
                    INT32_MAX);
}

absl::Status CheckModelType(ElementType type) {
  if (type == ElementType::kFloat32 || type == ElementType::kFloat64) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("element type of a model must be float32 or float64, got ",
                   ElementTypeName(type)));
}

absl::Status CheckLayerSizes(const char* field,
                             absl::Span<const int64_t> sizes) {
  if (sizes.size() > kMaxLayers) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must have at most ",
                                                   kMaxLayers, " entries, got ",
                                                   sizes.size()));
  }
  for (int64_t size : sizes) {
    if (absl::Status s = CheckRange(field, size, kMaxLayerSize); !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVariableSize(const VariableSpec& variable) {
  int64_t count = 1;
  for (const int64_t dim : variable.shape) {
    // A zero dimension would hide the overflow of others, but sizes are at
    // least 1.
    if (!__builtin_mul_overflow(count, dim, &count) &&
        count <= kMaxVariableElements) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "variable ", variable.name, " would be ", ShapeString(variable.shape),
        ", more than ", kMaxVariableElements,
        " elements; make model.hidden_units, model.conv_filters, "
        "model.kernel_size or model.embedding_dim smaller"));
  }
  return absl::OkStatus();
}

absl::Status CheckSetting(const char* field, int64_t value, int64_t largest) {
  return CheckRange(field, value, largest);
}

absl::Status CheckPictures(const char* kind, const ModelInput& input) {
  if (input.tokens == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.kind \"", kind,
      "\" needs pictures; set data.train_images, not data.train_text"));
}

absl::Status CheckGiven(const char* kind, const char* field,
                        absl::Span<const int64_t> sizes) {
  if (!sizes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must have at least one entry for model.kind \"",
                   kind, "\", got none"));
}

absl::Status CheckNotGiven(const char* kind, const char* field,
                           absl::Span<const int64_t> sizes) {
  if (sizes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be left out for model.kind \"", kind,
                   "\", got ", sizes.size(), " entries"));
}

absl::Status CheckKernelSize(int64_t kernel_size) {
  if (kernel_size >= 1 && kernel_size <= kMaxKernelSize &&
      kernel_size % 2 == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.kernel_size must be odd and in [1, ", kMaxKernelSize,
                   "], got ", kernel_size));
}

}  // namespace lockstep::worker
