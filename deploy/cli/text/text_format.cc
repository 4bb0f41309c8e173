#include "deploy/cli/text/text_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/text/plain_text.h"
#include "common/text/utf8.h"

namespace lockstep::cli {

namespace {

// In UTF-8 the bytes of a character after its first are 10xxxxxx.
bool Continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The bytes of the character at the beginning of `text`, as it stands there.
absl::string_view FirstOf(absl::string_view text) {
  size_t bytes = 1;
  if ((static_cast<unsigned char>(text[0]) & 0x80) == 0) {
    return text.substr(0, bytes);
  }
  while (bytes < text.size() && Continues(text[bytes])) ++bytes;
  return text.substr(0, bytes);
}

bool IsPrintable(absl::string_view character) {
  if (character.size() == 1) {
    return absl::ascii_isprint(static_cast<unsigned char>(character[0]));
  }
  return IsUtf8(character) && !Steers(character);
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const absl::string_view character = FirstOf(text);
    if (IsPrintable(character)) {
      absl::StrAppend(&out, character);
    } else {
      // One for each byte, so that the length in bytes stays.
      out.append(character.size(), '?');
    }
    text.remove_prefix(character.size());
  }
  return out;
}

size_t Columns(absl::string_view text) {
  return text.size() - static_cast<size_t>(
                           std::count_if(text.begin(), text.end(), Continues));
}

std::string Clip(absl::string_view text, size_t columns) {
  if (Columns(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t bytes = 0;
  for (size_t i = 1; i < columns; ++i)
    bytes += FirstOf(text.substr(bytes)).size();
  return absl::StrCat(text.substr(0, bytes), "~");
}

}  // namespace lockstep::cli
