#include "worker/device/float_copies.h"

#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"

namespace lockstep::worker {
namespace {

// Returns the elements in a span of bytes, which must start at a multiple of
// their size.
template <typename T>
absl::Span<T> As(absl::Span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

bool FloatCopies::AreNeeded(const std::vector<VariableSpec>& variables,
                            const ParameterMemory& memory) {
  for (size_t v = 0; v < variables.size(); ++v) {
    if (memory.dtype(v) != variables[v].dtype) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<FloatCopies>> FloatCopies::Make(
    const std::vector<VariableSpec>& variables, const ParameterMemory& memory) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      ParameterMemory copies,
      ParameterMemory::Make(variables, ParameterMemory::Gradients::kPrivate));
  return std::unique_ptr<FloatCopies>(
      new FloatCopies(memory, std::move(copies)));
}

void FloatCopies::CopyValue(size_t variable) const {
  const absl::Span<float> floats = As<float>(copies_.value(variable));
  if (memory_.dtype(variable) == DType::kBFloat16) {
    ExpandBFloat16(floats.size(), memory_.value(variable).data(),
                   floats.data());
    return;
  }
  // No third type: KeptVariables() gives all variables of a model one type,
  // which differs from float32 here.
  const absl::Span<const Float16> halves = As<Float16>(memory_.value(variable));
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = ToFloat(halves[i]);
}

void FloatCopies::RoundGradient(size_t variable) const {
  const absl::Span<const float> floats = As<float>(copies_.gradient(variable));
  const absl::Span<std::byte> rounded = memory_.gradient(variable);
  if (memory_.dtype(variable) == DType::kBFloat16) {
    RoundToBFloat16(floats.size(), copies_.gradient(variable).data(),
                    rounded.data());
    return;
  }
  const absl::Span<Float16> halves = As<Float16>(rounded);
  for (size_t i = 0; i < floats.size(); ++i) halves[i] = ToFloat16(floats[i]);
}

}  // namespace lockstep::worker
