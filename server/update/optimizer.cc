#include "server/update/optimizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"
#include "common/numeric/stream_copy.h"
#include "server/update/adaptive_kernels.h"
#include "server/update/hyperparameters.h"
#include "server/update/mean_norm.h"
#include "server/update/mean_reader.h"
#include "server/update/torch_kernels.h"
#include "server/update/update_kernels.h"

namespace lockstep::server {
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
    // The mean of bfloat16 is float32, and no wire type applies.
    if (input.is_mean) element = MeanSize(input.dtype, 1);
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
void ApplyBlock(const OptimizerConfig& config, const Hyperparameters& hyper,
                const AdamCoefficients<T>& adam, const UpdateBlock<T>& block) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kGradientDescent:
      return GradientDescentKernel(block, hyper.learning_rate);
    case OptimizerConfig::Kind::kMomentum:
      return config.use_nesterov
                 ? NesterovKernel(block, hyper.learning_rate, hyper.momentum)
                 : MomentumKernel(block, hyper.learning_rate, hyper.momentum);
    case OptimizerConfig::Kind::kAdam:
    case OptimizerConfig::Kind::kLazyAdam:
      return AdamKernel(block, adam);
    case OptimizerConfig::Kind::kAdagrad:
      return AdagradKernel(block, hyper.learning_rate);
    case OptimizerConfig::Kind::kAdagradDa:
      return AdagradDaKernel(block, hyper.proximal);
    case OptimizerConfig::Kind::kProximalAdagrad:
      return ProximalAdagradKernel(block, hyper.proximal);
    case OptimizerConfig::Kind::kProximalGradientDescent:
      return ProximalGradientDescentKernel(block, hyper.proximal);
    case OptimizerConfig::Kind::kRmsProp:
      return RmsPropKernel(block, hyper.rms_prop);
    case OptimizerConfig::Kind::kAdadelta:
      return AdadeltaKernel(block, hyper.adadelta);
    case OptimizerConfig::Kind::kFtrl:
      return FtrlKernel(block, hyper.ftrl);
    case OptimizerConfig::Kind::kSgd:
      return TorchSgdKernel(block, hyper.torch_sgd);
    case OptimizerConfig::Kind::kAdamTorch:
    case OptimizerConfig::Kind::kAdamW:
      return TorchAdamKernel(block, hyper.torch_adam);
  }
}

// A block of a bfloat16 variable and its slots as floats. The kernels update
// the floats in place.
class FloatBlock {
 public:
  explicit FloatBlock(size_t num_slots)
      : floats_((1 + num_slots) * kBlockElements) {}

  UpdateBlock<float> Load(const ApplyInput& input, size_t first, size_t count) {
    UpdateBlock<float> block;
    block.count = count;
    block.old_value = block.new_value = At(0);
    ExpandBFloat16(count, input.old_value.data() + first * kBFloat16Size,
                   At(0));
    for (size_t i = 0; i < Slots(); ++i) {
      block.old_slots[i] = block.new_slots[i] = At(1 + i);
      ExpandBFloat16(count, input.old_slots[i].data() + first * kBFloat16Size,
                     At(1 + i));
    }
    return block;
  }

  void Store(const ApplyInput& input, size_t first, size_t count) {
    Round(count, At(0), input.new_value.data() + first * kBFloat16Size);
    for (size_t i = 0; i < Slots(); ++i) {
      Round(count, At(1 + i),
            input.new_slots[i].data() + first * kBFloat16Size);
    }
  }

 private:
  size_t Slots() const { return floats_.size() / kBlockElements - 1; }
  float* At(size_t tensor) { return floats_.data() + tensor * kBlockElements; }
  static void Round(size_t count, const float* from, std::byte* to) {
    RoundToBFloat16(count, reinterpret_cast<const std::byte*>(from), to);
  }

  std::vector<float> floats_;
};

// BlockWalk walks through the state of an update block by block. New slots,
// which no call reads before the next step, are written past the caches; slots
// that are updated in place are not.
//
// New values are sent next, so they stay in the cache. Stores reach the cache
// in order, so one whose line is still on its way from memory delays all later
// ones; the lines of a block are therefore requested at its beginning.
template <typename T>
class BlockWalk {
 public:
  explicit BlockWalk(const ApplyInput& input) {
    block_.old_value = reinterpret_cast<const T*>(input.old_value.data());
    block_.new_value = reinterpret_cast<T*>(input.new_value.data());
    for (; slots_ < kMaxSlots && !input.new_slots[slots_].empty(); ++slots_) {
      const auto* old_slot =
          reinterpret_cast<const T*>(input.old_slots[slots_].data());
      auto* new_slot = reinterpret_cast<T*>(input.new_slots[slots_].data());
      block_.old_slots[slots_] = old_slot;
      block_.new_slots[slots_] = new_slot;
      if (new_slot == old_slot) continue;
      targets_[slots_] = new_slot;
      // The kernel writes the slot here, and Advance() copies it past the
      // caches.
      block_.new_slots[slots_] = written_[slots_].data();
    }
  }
  BlockWalk(const BlockWalk&) = delete;
  BlockWalk& operator=(const BlockWalk&) = delete;
  ~BlockWalk() { FinishStreaming(); }

  // The state of the next `count` elements, with their gradient.
  const UpdateBlock<T>& At(size_t count, const std::byte* gradient) {
    block_.count = count;
    block_.gradient = gradient;
    const auto* line = reinterpret_cast<const std::byte*>(block_.new_value);
    for (size_t i = 0; i < count * sizeof(T); i += kLine) {
      __builtin_prefetch(line + i, /*rw=*/1);
    }
    return block_;
  }

  // Writes the updated block out and moves to the next one.
  void Advance() {
    const size_t count = block_.count;
    block_.old_value += count;
    block_.new_value += count;
    for (size_t i = 0; i < slots_; ++i) {
      block_.old_slots[i] += count;
      if (targets_[i] == nullptr) {
        block_.new_slots[i] += count;
        continue;
      }
      StreamCopy(count * sizeof(T),
                 reinterpret_cast<const std::byte*>(written_[i].data()),
                 reinterpret_cast<std::byte*>(targets_[i]));
      targets_[i] += count;
    }
  }

 private:
  static constexpr size_t kLine = 64;  // bytes of the cache

  UpdateBlock<T> block_;
  size_t slots_ = 0;
  T* targets_[kMaxSlots] = {};  // null: updated in place
  alignas(64) std::array<std::array<T, kBlockElements>, kMaxSlots> written_;
};

// Multiplies the mean, block by block.
template <typename T>
class ScaledBlock {
 public:
  explicit ScaledBlock(double factor) : factor_(factor) {}

  // The result stays valid until the next call.
  const std::byte* Of(size_t count, const std::byte* mean) {
    // Without a limit the mean is used where it is, without a copy.
    if (factor_ == 1) return mean;
    ScaleKernel(count, mean, factor_, scaled_.data());
    return reinterpret_cast<const std::byte*>(scaled_.data());
  }

 private:
  const double factor_;
  alignas(64) std::array<T, kBlockElements> scaled_;
};

// Converts a count that T holds exactly.
template <typename T>
T FromCount(int64_t count) {
  return static_cast<T>(count);
}
template <>
Float16 FromCount<Float16>(int64_t count) {
  return ToFloat16(static_cast<float>(count));
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
bool Optimizer::ApplyBlocks(const ApplyInput& input) const {
  // Before MakeHyperparameters(): its arithmetic flushes subnormals too.
  ScopedFlushDenormals flush;
  const Hyperparameters hyper =
      MakeHyperparameters(config_, input.learning_rate, input.powers,
                          {input.updates, input.decays, input.step});
  const auto adam = MakeAdamCoefficients<T>(hyper.adam);
  MeanReader<T> mean(input.gradients, FromCount<T>(input.divisor),
                     input.merges);
  ScaledBlock<T> scaled(input.scale);
  BlockWalk<T> state(input);
  const size_t size = input.old_value.size() / sizeof(T);
  for (size_t first = 0; first < size; first += kBlockElements) {
    const size_t count = std::min(kBlockElements, size - first);
    ApplyBlock(config_, hyper, adam,
               state.At(count, scaled.Of(count, mean.Next(count))));
    state.Advance();
  }
  return mean.all_finite();
}

bool Optimizer::ApplyBFloat16(const ApplyInput& input) const {
  ScopedFlushDenormals flush;
  const Hyperparameters hyper =
      MakeHyperparameters(config_, input.learning_rate, input.powers,
                          {input.updates, input.decays, input.step});
  const auto adam = MakeAdamCoefficients<float>(hyper.adam);
  std::vector<GradientSlices> gradients(input.gradients.begin(),
                                        input.gradients.end());
  for (GradientSlices& each : gradients) {
    // A stored mean of bfloat16 is float32; see StoreMean().
    each.type =
        input.is_mean ? GradientType::kVariable : GradientType::kBFloat16;
  }
  MeanReader<float> mean(gradients, static_cast<float>(input.divisor),
                         input.merges);
  ScaledBlock<float> scaled(input.scale);
  FloatBlock floats(NumSlots(config_));
  const size_t size = input.old_value.size() / kBFloat16Size;
  for (size_t first = 0; first < size; first += kBlockElements) {
    const size_t count = std::min(kBlockElements, size - first);
    UpdateBlock<float> block = floats.Load(input, first, count);
    block.gradient = scaled.Of(count, mean.Next(count));
    ApplyBlock(config_, hyper, adam, block);
    floats.Store(input, first, count);
  }
  return mean.all_finite();
}

absl::Status Optimizer::Apply(const ApplyInput& input) const {
  LOCKSTEP_RETURN_IF_ERROR(Check(input));
  const bool finite = ApplyAs(input);
  if (input.mean_is_finite != nullptr) *input.mean_is_finite = finite;
  return absl::OkStatus();
}

bool Optimizer::ApplyAs(const ApplyInput& input) const {
  switch (input.dtype) {
    case DType::kFloat16:
      return ApplyBlocks<Float16>(input);
    case DType::kFloat32:
      return ApplyBlocks<float>(input);
    case DType::kFloat64:
      return ApplyBlocks<double>(input);
    case DType::kBFloat16:
      return ApplyBFloat16(input);
  }
  return true;
}

}  // namespace lockstep::server
