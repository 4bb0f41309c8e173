#include "chief/checkpoint/initial_values_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/count_text.h"

namespace lockstep::chief {
namespace {

constexpr size_t kNamed = 3;  // the line is for a terminal

}  // namespace

std::string InitialValuesText(const SafetensorsReader& values,
                              const std::vector<VariableSpec>& variables) {
  std::vector<std::string> others;
  for (const VariableSpec& variable : variables) {
    if (values.Find(variable.name) != nullptr) continue;
    others.push_back(absl::StrCat("\"", variable.name, "\""));
  }
  const size_t count = others.size();
  std::string text = absl::StrCat(
      variables.size() - count, " of ",
      CountText(static_cast<int64_t>(variables.size()), "variable"),
      " begin with the values of ", values.path());
  if (count == 0) return text;
  if (count > kNamed) {
    others.resize(kNamed);
    others.push_back(absl::StrCat(count - kNamed, " more"));
  }
  absl::StrAppend(&text, "; ", absl::StrJoin(others, ", "),
                  count == 1 ? " is not in it and begins as without it"
                             : " are not in it and begin as without it");
  return text;
}

}  // namespace lockstep::chief
