#include "server/optimizer/optimizer.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/denormals.h"
#include "common/status_macros.h"
#include "server/optimizer/mean_reader.h"
#include "server/optimizer/update_kernels.h"

namespace lockstep {
namespace {

// "value" is -1, slots count from 0.
std::string TensorLabel(int slot) {
  return slot < 0 ? "value" : absl::StrCat("slot ", slot);
}

bool IsAligned(const std::byte* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % ElementSize(dtype) == 0;
}

bool OverlapInPart(absl::Span<const std::byte> a,
                   absl::Span<const std::byte> b) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a.data());
  const auto b_begin = reinterpret_cast<uintptr_t>(b.data());
  return a_begin != b_begin && a_begin < b_begin + b.size() &&
         b_begin < a_begin + a.size();
}

// Checks one tensor, the value or a slot, before and after the update.
absl::Status CheckTensor(int slot, DType dtype, size_t size,
                         absl::Span<const std::byte> before,
                         absl::Span<const std::byte> after) {
  if (before.size() != size || after.size() != size) {
    return absl::InvalidArgumentError(absl::StrCat(
        TensorLabel(slot), " has ", before.size(), " bytes before and ",
        after.size(), " after the update; both must be ", size,
        ", as long as the old value"));
  }
  if (!IsAligned(before.data(), dtype) || !IsAligned(after.data(), dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(TensorLabel(slot), " must start at a multiple of ",
                     ElementSize(dtype), " bytes"));
  }
  if (OverlapInPart(before, after)) {
    return absl::InvalidArgumentError(absl::StrCat(
        TensorLabel(slot), ": the memory before and after the update must be ",
        "the same or apart, not overlap in part"));
  }
  return absl::OkStatus();
}

absl::Status CheckGradients(const ApplyInput& input) {
  if (input.gradients.empty() || input.divisor < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.gradients.size(), " gradients and divisor ",
                     input.divisor, "; each must be at least 1"));
  }
  const size_t elements = input.old_value.size() / ElementSize(input.dtype);
  for (size_t i = 0; i < input.gradients.size(); ++i) {
    const GradientSlices& gradient = input.gradients[i];
    LOCKSTEP_ASSIGN_OR_RETURN(size_t element,
                              GradientElementSize(input.dtype, gradient.type));
    const size_t size = TotalSize(gradient.slices);
    if (size == elements * element) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gradient ", i, " has ", size, " bytes; as ",
                     std::string(GradientTypeName(gradient.type)),
                     " the part has ", elements * element));
  }
  return absl::OkStatus();
}

template <typename T>
UpdateBlock<T> MakeBlock(const ApplyInput& input, size_t first, size_t count) {
  const auto old_at = [first](absl::Span<const std::byte> span) {
    return reinterpret_cast<const T*>(span.data()) + first;
  };
  const auto new_at = [first](absl::Span<std::byte> span) {
    return reinterpret_cast<T*>(span.data()) + first;
  };
  UpdateBlock<T> block;
  block.count = count;
  block.old_value = old_at(input.old_value);
  block.new_value = new_at(input.new_value);
  for (size_t i = 0; i < kMaxSlots && !input.new_slots[i].empty(); ++i) {
    block.old_slots[i] = old_at(input.old_slots[i]);
    block.new_slots[i] = new_at(input.new_slots[i]);
  }
  return block;
}

// What one step needs besides the memory.
template <typename T>
struct Coefficients {
  float learning_rate;
  float momentum;
  AdamCoefficients<T> adam;
};

template <typename T>
Coefficients<T> MakeCoefficients(const OptimizerConfig& config,
                                 const ApplyInput& input) {
  const auto rate = static_cast<float>(input.learning_rate);
  return {
      rate, static_cast<float>(config.momentum),
      MakeAdamCoefficients<T>(
          {rate, static_cast<float>(config.beta1),
           static_cast<float>(config.beta2), static_cast<float>(config.epsilon),
           input.powers.beta1_power, input.powers.beta2_power})};
}

template <typename T>
void ApplyBlock(const OptimizerConfig& config, const Coefficients<T>& c,
                const UpdateBlock<T>& block) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kGradientDescent:
      return GradientDescentKernel(block, c.learning_rate);
    case OptimizerConfig::Kind::kMomentum:
      return config.use_nesterov
                 ? NesterovKernel(block, c.learning_rate, c.momentum)
                 : MomentumKernel(block, c.learning_rate, c.momentum);
    case OptimizerConfig::Kind::kAdam:
      return AdamKernel(block, c.adam);
  }
}

}  // namespace

absl::Status Optimizer::Check(const ApplyInput& input) const {
  const size_t size = input.old_value.size();
  if (size == 0 || size % ElementSize(input.dtype) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "value has ", size, " bytes; it must be a positive multiple of ",
        ElementSize(input.dtype)));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckTensor(-1, input.dtype, size, input.old_value, input.new_value));
  const int slots = static_cast<int>(NumSlots(config_));
  for (int i = 0; i < slots; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensor(
        i, input.dtype, size, input.old_slots[i], input.new_slots[i]));
  }
  return CheckGradients(input);
}

template <typename T>
void Optimizer::ApplyBlocks(const ApplyInput& input) const {
  ScopedFlushDenormals flush;
  const Coefficients<T> coefficients = MakeCoefficients<T>(config_, input);
  MeanReader<T> mean(input.gradients, static_cast<T>(input.divisor));
  const size_t size = input.old_value.size() / sizeof(T);
  for (size_t first = 0; first < size; first += kBlockElements) {
    const size_t count = std::min(kBlockElements, size - first);
    UpdateBlock<T> block = MakeBlock<T>(input, first, count);
    block.gradient = mean.Next(count);
    ApplyBlock(config_, coefficients, block);
  }
}

absl::Status Optimizer::Apply(const ApplyInput& input) const {
  if (input.dtype == DType::kFloat16) {
    return absl::UnimplementedError(
        "dtype float16: optimizers update float32 and float64 variables only");
  }
  LOCKSTEP_RETURN_IF_ERROR(Check(input));
  if (input.dtype == DType::kFloat32) {
    ApplyBlocks<float>(input);
  } else {
    ApplyBlocks<double>(input);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
