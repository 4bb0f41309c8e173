#include "common/plan/plan.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {

std::vector<Part> PartsOf(const Plan& plan, int server) {
  std::vector<Part> parts;
  for (const Part& part : plan.parts) {
    // With mirrors, every server holds every part.
    if (plan.mirrored || part.server == server) parts.push_back(part);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.index < b.index; });
  return parts;
}
namespace {

absl::Status OfAnotherModel(absl::string_view difference) {
  return absl::InvalidArgumentError(
      absl::StrCat("the chief's plan is of another model than this worker has "
                   "described: ",
                   difference,
                   "; check that TF_CONFIG names the chief of this job, and "
                   "that all programs are of one version"));
}

absl::Status CheckModel(const std::vector<VariableSpec>& plan,
                        const std::vector<VariableSpec>& model) {
  if (plan.size() != model.size()) {
    return OfAnotherModel(absl::StrCat("it has ", plan.size(),
                                       " variables, the model ", model.size()));
  }
  for (size_t i = 0; i < model.size(); ++i) {
    if (plan[i] == model[i]) continue;
    return OfAnotherModel(
        absl::StrCat("its variable ", i, " is ", VariableString(plan[i]),
                     ", the model's ", VariableString(model[i])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlan(const Plan& plan,
                       const std::vector<VariableSpec>& model) {
  // Equal variables also mean that the part's index below is valid for `model`:
  // PlanFromProto() has checked it against plan.variables.
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(plan.variables, model));
  std::vector<int64_t> planned(model.size(), 0);  // elements
  for (const Part& part : plan.parts) {
    const VariableSpec& variable = model[static_cast<size_t>(part.variable)];
    int64_t& elements = planned[static_cast<size_t>(part.variable)];
    // Parts of a table interleave (row_stride) or divide keys, so only their
    // sum is checked.
    const bool follows = variable.is_table() || part.offset == elements;
    if (!follows || part.count > NumElements(variable.shape) - elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the chief's plan has a part of \"", variable.name, "\" at element ",
          part.offset, " with ", part.count, " elements, where ", elements,
          " of ", NumElements(variable.shape),
          " have their place already; parts must follow one another: start a "
          "chief of this program's version"));
    }
    elements += part.count;
  }
  for (size_t i = 0; i < model.size(); ++i) {
    if (planned[i] == NumElements(model[i].shape)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the chief's plan has a place for ", planned[i], " of the ",
        NumElements(model[i].shape), " elements of \"", model[i].name,
        "\"; it must have one for all: start a chief of this program's "
        "version"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
