#include "common/text/plain_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

bool Continues(char byte) {  // true for a continuation byte of UTF-8
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Returns the number of bytes of the character at `at` if it steers what shows
// the text; 0: it does not.
size_t SteeringBytes(absl::string_view text, size_t at) {
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{3}}) {
    if (Steers(text.substr(at, bytes))) return bytes;
  }
  return 0;
}

std::string Escaped(absl::string_view character) {
  if (character == "\n") return "\\n";
  if (character == "\t") return "\\t";
  std::string out;
  for (const char byte : character) {
    absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(byte));
  }
  return out;
}

}  // namespace

bool Steers(absl::string_view character) {
  const auto in = [character](absl::string_view first, absl::string_view last) {
    return character.size() == first.size() && character >= first &&
           character <= last;
  };
  if (character.size() == 1) {
    const auto byte = static_cast<unsigned char>(character[0]);
    return byte < 0x20 || byte == 0x7f;
  }
  return in("\xC2\x80", "\xC2\x9F") ||          // U+0080 to U+009F
         in("\xD8\x9C", "\xD8\x9C") ||          // U+061C
         in("\xE2\x80\x8E", "\xE2\x80\x8F") ||  // U+200E, U+200F
         in("\xE2\x80\xA8", "\xE2\x80\xAE") ||  // U+2028 to U+202E
         in("\xE2\x81\xA6", "\xE2\x81\xA9");    // U+2066 to U+2069
}

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
    const size_t steering = SteeringBytes(cut, at);
    if (steering == 0) {
      out.push_back(cut[at++]);
      continue;
    }
    out += Escaped(absl::string_view(cut).substr(at, steering));
    at += steering;
  }
  return out;
}

bool IsOneLine(absl::string_view text, size_t most) {
  if (text.size() > most) return false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (SteeringBytes(text, at) > 0) return false;
  }
  return true;
}

}  // namespace lockstep
