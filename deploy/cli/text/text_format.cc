#include "deploy/cli/text/text_format.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lockstep::cli {

std::string Printable(absl::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return out;
}

std::string Clip(absl::string_view text, size_t columns) {
  if (text.size() <= columns) return std::string(text);
  if (columns == 0) return "";
  return absl::StrCat(text.substr(0, columns - 1), "~");
}

}  // namespace lockstep::cli
