#include "strategy/gradients.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"

namespace lockstep::strategy {

absl::Status CheckGradient(const Leaf& gradient, const Variable& variable) {
  const Value* dense = std::get_if<Value>(&gradient);
  bool fits = false;
  if (dense != nullptr) {
    fits =
        dense->type() == variable.type() && dense->shape() == variable.shape();
  } else {
    const Slices& slices = std::get<Slices>(gradient);
    std::vector<int64_t> shape = variable.shape();
    if (!shape.empty()) {
      shape[0] = static_cast<int64_t>(slices.indices.size());
      fits = slices.values.type() == variable.type() &&
             slices.values.shape() == shape &&
             std::all_of(slices.indices.begin(), slices.indices.end(),
                         [&](int64_t index) {
                           return index >= 0 && index < variable.shape()[0];
                         });
    }
  }
  if (fits) return CheckLeaf(gradient);
  return absl::InvalidArgumentError(
      absl::StrCat("the gradient of \"", variable.name(), "\" is ",
                   DescriptionOf(gradient), ", which does not fit it"));
}

absl::Status MultiplyBy(const Value& factor, const std::string& name,
                        Leaf& gradient) {
  LOCKSTEP_RETURN_IF_ERROR(factor.Check());
  LOCKSTEP_RETURN_IF_ERROR(CheckLeaf(gradient));
  Value* values = std::get_if<Value>(&gradient);
  if (values == nullptr) values = &std::get<Slices>(gradient).values;
  if (!factor.shape().empty() || factor.type() != values->type()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grad_loss is ", factor.Description(), ", but must be a scalar of the ",
        "type of the gradient of \"", name, "\", which is ",
        DescriptionOf(gradient)));
  }
  const size_t size = factor.bytes().size();
  for (size_t i = 0; i < values->size(); ++i) {
    Combine(values->type(), Arithmetic::kMultiply, 1,
            values->mutable_bytes().data() + i * size, factor.bytes().data());
  }
  return absl::OkStatus();
}

}  // namespace lockstep::strategy
