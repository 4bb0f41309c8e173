#include "server/update/sparse_optimizer.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"
#include "common/numeric/parallel_blocks.h"
#include "common/plan/variable_spec.h"
#include "server/update/hyperparameters.h"
#include "server/update/sparse_kernels.h"
#include "server/update/torch_kernels.h"

namespace lockstep::server {
namespace {

using Kind = OptimizerConfig::Kind;

// Elements of a row; the product of the dimensions is known to fit.
size_t RowElements(absl::Span<const int64_t> shape) {
  size_t elements = 1;
  for (const int64_t dim : shape.subspan(1)) elements *= dim;
  return elements;
}

std::string Text(absl::Span<const int64_t> shape) {
  return ShapeString({shape.begin(), shape.end()});
}

// True if `size` bytes are a tensor of `shape`, of rank 1 or more.
bool Holds(absl::Span<const int64_t> shape, DType dtype, size_t size) {
  size_t bytes = ElementSize(dtype);
  if (shape.empty()) return false;
  for (const int64_t dim : shape) {
    // Shapes come from a message: their product may overflow.
    if (dim < 0 || __builtin_mul_overflow(bytes, size_t(dim), &bytes)) {
      return false;
    }
  }
  return bytes == size;
}

bool IsAligned(absl::Span<std::byte> bytes, DType dtype) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % ElementSize(dtype) == 0;
}

absl::Status CheckMemory(const SparseApplyInput& input, size_t num_slots) {
  bool good = Holds(input.shape, input.dtype, input.value.size()) &&
              IsAligned(input.value, input.dtype);
  for (size_t i = 0; i < num_slots; ++i) {
    good = good && input.slots[i].size() == input.value.size() &&
           IsAligned(input.slots[i], input.dtype);
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "value and slots must be aligned and as long as their shape, ",
      Text(input.shape), ", of rank 1 or more, says"));
}

absl::Status CheckGradient(const SparseApplyInput& input) {
  const absl::Span<const int64_t> rows = input.values_shape;
  const bool fits = Holds(rows, input.dtype, input.values.size()) &&
                    static_cast<size_t>(rows[0]) == input.indices.size() &&
                    rows.subspan(1) == input.shape.subspan(1);
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient has ", input.indices.size(), " indices, rows of shape ",
        Text(rows), " and ", input.values.size(),
        " bytes; a variable of shape ", Text(input.shape),
        " needs one row of its width per index"));
  }
  for (const int64_t index : input.indices) {
    if (index >= 0 && index < input.shape[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gradient index is ", index,
                     ", must be at least 0 and less than ", input.shape[0]));
  }
  return absl::OkStatus();
}

// In float16 a learning rate may round to 0.
absl::Status CheckFtrl(DType dtype, const FtrlHyperparameters& hyper) {
  const float rate = dtype == DType::kFloat16
                         ? ToFloat(ToFloat16(hyper.learning_rate))
                         : hyper.learning_rate;
  if (rate > 0 && !(hyper.l2 < 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Ftrl: learning_rate is ", rate, " and l2 is ", hyper.l2,
      "; for sparse gradients they must be above 0 and at least 0"));
}

// The sum of the gradient's rows by index.
template <typename T>
struct SummedRows {
  std::vector<int64_t> indices;  // in order of first appearance
  std::vector<T> sums;
};

template <typename T>
SummedRows<T> SumRows(const SparseApplyInput& input, size_t width) {
  SummedRows<T> summed;
  absl::flat_hash_map<int64_t, size_t> place;
  for (size_t i = 0; i < input.indices.size(); ++i) {
    // In order of appearance, as TensorFlow adds: the order decides the bits.
    const auto [found, is_new] =
        place.try_emplace(input.indices[i], summed.indices.size());
    if (is_new) {
      summed.indices.push_back(input.indices[i]);
      summed.sums.resize(summed.sums.size() + width, T{});
    }
    AddRow(width, input.values.data() + i * width * sizeof(T),
           summed.sums.data() + found->second * width);
  }
  return summed;
}

// The rows as they are, with repeated indices.
template <typename T>
SummedRows<T> CopyRows(const SparseApplyInput& input) {
  SummedRows<T> rows;
  rows.indices.assign(input.indices.begin(), input.indices.end());
  rows.sums.resize(input.values.size() / sizeof(T));
  std::copy(input.values.begin(), input.values.end(),
            reinterpret_cast<std::byte*>(rows.sums.data()));
  return rows;
}

// The row as a block that is updated in place.
template <typename T>
UpdateBlock<T> BlockOf(const SparseRow<T>& row) {
  UpdateBlock<T> block;
  block.count = row.count;
  block.gradient = reinterpret_cast<const std::byte*>(row.gradient);
  block.old_value = block.new_value = row.value;
  for (size_t i = 0; i < kMaxSlots; ++i) {
    block.old_slots[i] = block.new_slots[i] = row.slots[i];
  }
  return block;
}

template <typename T>
void ApplyRow(const OptimizerConfig& config, const Hyperparameters& hyper,
              const AdamCoefficients<T>& adam, const SparseRow<T>& row) {
  switch (config.kind) {
    case Kind::kGradientDescent:
      return GradientDescentRow(row, hyper.learning_rate);
    case Kind::kMomentum:
      return config.use_nesterov
                 ? NesterovRow(row, hyper.learning_rate, hyper.momentum)
                 : MomentumRow(row, hyper.learning_rate, hyper.momentum);
    case Kind::kAdam:
      return AdamSlotsRow(row, adam);
    case Kind::kLazyAdam:
      return LazyAdamRow(row, hyper.adam);
    case Kind::kAdagrad:
      return AdagradRow(row, hyper.learning_rate);
    case Kind::kAdagradDa:
      return AdagradDaRow(row, hyper.proximal);
    case Kind::kProximalAdagrad:
      return ProximalAdagradRow(row, hyper.proximal);
    case Kind::kProximalGradientDescent:
      return ProximalGradientDescentRow(row, hyper.proximal);
    case Kind::kRmsProp:
      return RmsPropRow(row, hyper.rms_prop);
    case Kind::kAdadelta:
      return AdadeltaRow(row, hyper.adadelta);
    case Kind::kFtrl:
      return FtrlRow(row, hyper.ftrl);
    case Kind::kSgd:
      return TorchSgdKernel(BlockOf(row), hyper.torch_sgd);
    case Kind::kAdamTorch:
    case Kind::kAdamW:
      return TorchAdamKernel(BlockOf(row), hyper.torch_adam);
  }
}

template <typename T>
T* Elements(absl::Span<std::byte> bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

template <typename T>
void DecaySlots(float beta1, float beta2, absl::Span<std::byte> m,
                absl::Span<std::byte> v) {
  ForEachBlock(m.size() / sizeof(T), [&](size_t first, size_t count) {
    AdamDecayKernel(count, beta1, Elements<T>(m) + first);
    AdamDecayKernel(count, beta2, Elements<T>(v) + first);
  });
}

// Elements of a bfloat16 variable and its slots as floats.
class FloatRow {
 public:
  FloatRow(const SparseApplyInput& input, size_t num_slots, size_t elements)
      : elements_(elements), floats_((1 + num_slots) * elements) {
    tensors_.push_back(input.value);
    for (size_t i = 0; i < num_slots; ++i) tensors_.push_back(input.slots[i]);
  }

  // `count` elements from `first` on; at most as many as it was made for.
  SparseRow<float> Load(size_t first, size_t count, const float* gradient) {
    SparseRow<float> row{count, gradient, At(0), {}};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      ExpandBFloat16(count, tensors_[i].data() + first * kBFloat16Size, At(i));
      if (i > 0) row.slots[i - 1] = At(i);
    }
    return row;
  }

  void Store(size_t first, size_t count) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      RoundToBFloat16(count, reinterpret_cast<const std::byte*>(At(i)),
                      tensors_[i].data() + first * kBFloat16Size);
    }
  }

 private:
  float* At(size_t tensor) { return floats_.data() + tensor * elements_; }

  const size_t elements_;
  std::vector<float> floats_;
  std::vector<absl::Span<std::byte>> tensors_;
};

// 4 KiB of each tensor, which stay in the nearest cache.
constexpr size_t kFloatsAtATime = 1024;

// Calls `visit(first, count)` for all of `elements`, few at a time.
template <typename Visit>
void ForEachFew(size_t elements, const Visit& visit) {
  ForEachBlock(elements, [&](size_t first, size_t count) {
    for (size_t i = 0; i < count; i += kFloatsAtATime) {
      visit(first + i, std::min(kFloatsAtATime, count - i));
    }
  });
}

void DecayBFloat16(float beta, absl::Span<std::byte> slot) {
  ForEachFew(slot.size() / kBFloat16Size, [&](size_t first, size_t count) {
    std::array<float, kFloatsAtATime> floats;
    std::byte* at = slot.data() + first * kBFloat16Size;
    ExpandBFloat16(count, at, floats.data());
    AdamDecayKernel(count, beta, floats.data());
    RoundToBFloat16(count, reinterpret_cast<const std::byte*>(floats.data()),
                    at);
  });
}

void SweepBFloat16(const AdamCoefficients<float>& adam,
                   const SparseApplyInput& input) {
  ForEachFew(
      input.value.size() / kBFloat16Size, [&](size_t first, size_t count) {
        // m and v.
        FloatRow few(input, 2, count);
        const SparseRow<float> row = few.Load(first, count, nullptr);
        AdamSweepKernel(count, adam, row.slots[0], row.slots[1], row.value);
        few.Store(first, count);
      });
}

}  // namespace

template <typename T>
void SparseOptimizer::ApplyRows(const SparseApplyInput& input) const {
  const size_t width = RowElements(input.shape);
  // TensorFlow's gradient descent applies repeated rows one after the other,
  // which rounds differently from their sum.
  const SummedRows<T> rows = config_.kind == Kind::kGradientDescent
                                 ? CopyRows<T>(input)
                                 : SumRows<T>(input, width);
  const Hyperparameters hyper =
      MakeHyperparameters(config_, input.learning_rate, input.powers,
                          {input.updates, input.decays, input.step});
  const auto adam = MakeAdamCoefficients<T>(hyper.adam);
  const size_t num_slots = NumSlots(config_);
  // Adam, in TensorFlow's order: decays the slots of all rows, adds the
  // gradients of some, then moves all values.
  if (config_.kind == Kind::kAdam && !input.decayed) {
    DecaySlots<T>(hyper.adam.beta1, hyper.adam.beta2, input.slots[0],
                  input.slots[1]);
  }
  for (size_t i = 0; i < rows.indices.size(); ++i) {
    const size_t first = static_cast<size_t>(rows.indices[i]) * width;
    SparseRow<T> row{width,
                     rows.sums.data() + i * width,
                     Elements<T>(input.value) + first,
                     {}};
    for (size_t slot = 0; slot < num_slots; ++slot) {
      row.slots[slot] = Elements<T>(input.slots[slot]) + first;
    }
    ApplyRow(config_, hyper, adam, row);
  }
  if (config_.kind == Kind::kAdam) {
    ForEachBlock(
        input.value.size() / sizeof(T), [&](size_t first, size_t count) {
          AdamSweepKernel(count, adam, Elements<T>(input.slots[0]) + first,
                          Elements<T>(input.slots[1]) + first,
                          Elements<T>(input.value) + first);
        });
  }
}

// Only the gradient is copied as a whole to float32; value and slots are
// converted row by row.
void SparseOptimizer::ApplyBFloat16(const SparseApplyInput& input) const {
  const size_t width = RowElements(input.shape);
  std::vector<float> floats(input.values.size() / kBFloat16Size);
  ExpandBFloat16(floats.size(), input.values.data(), floats.data());
  SparseApplyInput gradient = input;
  gradient.values = {reinterpret_cast<const std::byte*>(floats.data()),
                     floats.size() * sizeof(float)};
  const SummedRows<float> rows = config_.kind == Kind::kGradientDescent
                                     ? CopyRows<float>(gradient)
                                     : SumRows<float>(gradient, width);
  const Hyperparameters hyper =
      MakeHyperparameters(config_, input.learning_rate, input.powers,
                          {input.updates, input.decays, input.step});
  const auto adam = MakeAdamCoefficients<float>(hyper.adam);
  if (config_.kind == Kind::kAdam && !input.decayed) {
    DecayBFloat16(hyper.adam.beta1, input.slots[0]);
    DecayBFloat16(hyper.adam.beta2, input.slots[1]);
  }
  FloatRow row(input, NumSlots(config_), width);
  for (size_t i = 0; i < rows.indices.size(); ++i) {
    const size_t first = static_cast<size_t>(rows.indices[i]) * width;
    ApplyRow(config_, hyper, adam,
             row.Load(first, width, rows.sums.data() + i * width));
    row.Store(first, width);
  }
  if (config_.kind == Kind::kAdam) SweepBFloat16(adam, input);
}

absl::Status SparseOptimizer::CheckRate(DType dtype,
                                        double learning_rate) const {
  if (config_.kind != Kind::kFtrl) return absl::OkStatus();
  const ScopedFlushDenormals flush;
  return CheckFtrl(
      dtype,
      MakeHyperparameters(config_, learning_rate, AdamPowers(), {}).ftrl);
}

absl::Status SparseOptimizer::Apply(const SparseApplyInput& input) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckMemory(input, NumSlots(config_)));
  LOCKSTEP_RETURN_IF_ERROR(CheckGradient(input));
  const ScopedFlushDenormals flush;
  // Before anything is written: TensorFlow's sparse kernel checks these, too.
  LOCKSTEP_RETURN_IF_ERROR(CheckRate(input.dtype, input.learning_rate));
  switch (input.dtype) {
    case DType::kFloat16:
      ApplyRows<Float16>(input);
      break;
    case DType::kFloat32:
      ApplyRows<float>(input);
      break;
    case DType::kFloat64:
      ApplyRows<double>(input);
      break;
    case DType::kBFloat16:
      ApplyBFloat16(input);
      break;
  }
  return absl::OkStatus();
}

absl::Status SparseOptimizer::Decay(
    DType dtype, absl::Span<const absl::Span<std::byte>> slots) const {
  if (config_.kind != Kind::kAdam) return absl::OkStatus();
  const bool good =
      slots.size() >= 2 && slots[0].size() == slots[1].size() &&
      std::all_of(slots.begin(), slots.end(), [dtype](auto slot) {
        return slot.size() % ElementSize(dtype) == 0 && IsAligned(slot, dtype);
      });
  if (!good) {
    return absl::InvalidArgumentError(
        "Adam decays two slots of whole, aligned elements, equally many");
  }
  const auto beta1 = static_cast<float>(config_.beta1);
  const auto beta2 = static_cast<float>(config_.beta2);
  const ScopedFlushDenormals flush;
  switch (dtype) {
    case DType::kFloat16:
      DecaySlots<Float16>(beta1, beta2, slots[0], slots[1]);
      break;
    case DType::kFloat32:
      DecaySlots<float>(beta1, beta2, slots[0], slots[1]);
      break;
    case DType::kFloat64:
      DecaySlots<double>(beta1, beta2, slots[0], slots[1]);
      break;
    case DType::kBFloat16:
      DecayBFloat16(beta1, slots[0]);
      DecayBFloat16(beta2, slots[1]);
      break;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::server
