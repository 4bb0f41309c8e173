#include "common/text/excerpt.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

std::string Excerpt(absl::string_view value, size_t most) {
  const bool cut = value.size() > most;
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, most)),
                      cut ? "...\"" : "\"");
}

}  // namespace lockstep
