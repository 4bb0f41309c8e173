#include "common/text/excerpt.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr size_t kMaxLength = 60;

}  // namespace

std::string Excerpt(absl::string_view value) {
  const bool cut = value.size() > kMaxLength;
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, kMaxLength)),
                      cut ? "...\"" : "\"");
}

}  // namespace lockstep
