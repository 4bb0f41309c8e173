#include "common/plan/figure.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

constexpr size_t kLongestName = 64;

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '_' || c == '-' || c == '.' || c == '/';
         });
}

}  // namespace

absl::Status CheckFigures(const std::vector<NamedFigure>& figures) {
  if (figures.size() > kMostFigures) {
    return absl::InvalidArgumentError(
        absl::StrCat(figures.size(), " figures were reported; there can be ",
                     kMostFigures, " at most"));
  }
  for (size_t i = 0; i < figures.size(); ++i) {
    const NamedFigure& figure = figures[i];
    if (!IsName(figure.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name of a figure is ", Excerpt(figure.name),
                       "; it must have 1 to ", kLongestName,
                       " letters, digits, '_', '-', '.' or '/'"));
    }
    if (!std::isfinite(figure.value)) {
      return absl::InvalidArgumentError(absl::StrCat("figure \"", figure.name,
                                                     "\" is ", figure.value,
                                                     "; it must be finite"));
    }
    // Quadratic, but the number is at most kMostFigures.
    for (size_t j = 0; j < i; ++j) {
      if (figures[j].name != figure.name) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "figure \"", figure.name, "\" was reported twice; give it once"));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
