#include "common/text/plain_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

bool Continues(char byte) {  // true for a continuation byte of UTF-8
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Returns the number of bytes of the control character at `at`; 0: none.
size_t ControlBytes(absl::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  // U+0080 to U+009F: one of them begins terminal control sequences.
  if (byte != 0xc2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

std::string Escaped(absl::string_view control) {
  if (control == "\n") return "\\n";
  if (control == "\t") return "\\t";
  std::string out;
  for (const char byte : control) {
    absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(byte));
  }
  return out;
}

}  // namespace

std::string CutText(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most;
  // A UTF-8 character has four bytes at most.
  while (end > 0 && most - end < 4 && Continues(text[end])) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

std::string OneLine(absl::string_view text, size_t most) {
  const std::string cut = CutText(text, most);
  std::string out;
  out.reserve(cut.size());
  for (size_t at = 0; at < cut.size();) {
    const size_t control = ControlBytes(cut, at);
    if (control == 0) {
      out.push_back(cut[at++]);
      continue;
    }
    out += Escaped(absl::string_view(cut).substr(at, control));
    at += control;
  }
  return out;
}

bool IsOneLine(absl::string_view text, size_t most) {
  if (text.size() > most) return false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (ControlBytes(text, at) > 0) return false;
  }
  return true;
}

}  // namespace lockstep
